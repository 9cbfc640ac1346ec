// Writes src/api/schema.ts from the server's OpenAPI file: one interface per schema. `npm run types`; a unit test compares.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const HEAD = "// Generated from docs/openapi.json by `npm run types`. Do not edit.\n";

/** The text of schema.ts for a parsed OpenAPI document. */
export function renderSchemas(openapi) {
  const schemas = Object.entries(openapi.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  return [HEAD, ...schemas.map(([name, schema]) => renderSchema(name, schema))].join("\n");
}

function renderSchema(name, schema) {
  const note = schema.description ? `/** ${schema.description.replace(/\s+/g, " ").trim()} */\n` : "";
  if (schema.type !== "object" || !schema.properties) return `${note}export type ${name} = ${typeOf(schema)};\n`;
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties).map(([key, value]) => `  readonly ${key}${required.has(key) ? "" : "?"}: ${typeOf(value)};`);
  return `${note}export interface ${name} {\n${lines.join("\n")}\n}\n`;
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.prefixItems) return `readonly [${schema.prefixItems.map(typeOf).join(", ")}]`;
  switch (schema.type) {
    case "array":
      return `readonly ${grouped(typeOf(schema.items))}[]`;
    case "object":
      return schema.additionalProperties ? `Readonly<Record<string, ${typeOf(schema.additionalProperties)}>>` : "object";
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    default:
      return "unknown";
  }
}

const grouped = (type) => (/[ |]/.test(type) ? `(${type})` : type);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const openapi = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
  writeFileSync(new URL("../src/api/schema.ts", import.meta.url), renderSchemas(openapi));
}
