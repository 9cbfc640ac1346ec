// Tables as files for a spreadsheet, in the form of the server's: UTF-8 with BOM, raw numbers, no cell that a spreadsheet would run.

// The wide forms are read alike by spreadsheets of East Asian languages.
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** A cell of text. What a spreadsheet would run as a formula gets a leading `'`. */
export function quoted(text: string): string {
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csvOf = (lines: readonly (readonly string[])[]): string => `\ufeff${lines.map((cells) => cells.join(",")).join("\r\n")}\r\n`;

type Flat = Readonly<Record<string, unknown>>;

/** The rows of an answer under its own keys, of all rows; a thing in a row becomes columns like `instances.running`. */
export function rowsCsv(rows: readonly object[]): string {
  const flat = rows.map(flattened);
  const keys = [...new Set(flat.flatMap((row) => Object.keys(row)))];
  return csvOf([keys.map(quoted), ...flat.map((row) => keys.map((key) => cellOf(row[key])))]);
}

const isThing = (value: unknown): value is Flat => typeof value === "object" && value !== null && !Array.isArray(value);

const flattened = (row: object): Flat =>
  Object.fromEntries(Object.entries(row).flatMap(([key, value]) => (isThing(value) ? Object.entries(value).map(([part, of]) => [`${key}.${part}`, of]) : [[key, value]])));

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return quoted(Array.isArray(value) ? value.map(itemOf).join("; ") : String(value));
}

const itemOf = (item: unknown): string => (isThing(item) ? Object.values(item).join("=") : String(item));
