import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
// @ts-expect-error -- a plain script without types
import { renderSchemas } from "../tools/api-types.mjs";

it("the types of the page are those of the server's OpenAPI file (else: npm run types)", () => {
  const openapi = JSON.parse(readFileSync("../docs/openapi.json", "utf8"));
  expect(readFileSync("src/api/schema.ts", "utf8")).toBe(renderSchemas(openapi));
});
