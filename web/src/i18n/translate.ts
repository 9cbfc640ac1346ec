// How does a message become text? `{name}` is a value, `{n:GPU|GPUs}` chooses by number. Values are text, never markup, and reorder nothing beside them.
import { isolated } from "../format/shown";
import { en } from "./en";
import { xidInChinese } from "./xids";
import { zhCN } from "./zh-CN";

export type Locale = "en" | "zh-CN";
export type MessageKey = keyof typeof en;
export type Values = Readonly<Record<string, string | number | null | undefined>>;

export const catalogues: Readonly<Record<Locale, Readonly<Record<MessageKey, string>>>> = { en, "zh-CN": zhCN };

/** `written`: how a value is written; as it is (`String`) in what is copied. */
export function fill(message: string, values: Values, written: (text: string) => string = isolated): string {
  return message.replace(/\{(\w+)(?::([^|{}]*)\|([^{}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (one !== undefined) return Number(value) === 1 ? one : (many ?? "");
    return value === null || value === undefined ? (name in values ? "—" : whole) : written(String(value));
  });
}

export function translate(locale: Locale, key: MessageKey, values: Values = {}): string {
  return fill(catalogues[locale][key], values);
}

export function isMessageKey(key: string): key is MessageKey {
  return Object.hasOwn(en, key);
}

/** A message of the server: translated by its code where the catalogue has it, else the server's own words. */
export function translateCode(locale: Locale, prefix: string, code: string, values: Values, fallback: string): string {
  const key = `${prefix}.${code}`;
  if (!isMessageKey(key)) return isolated((locale === "zh-CN" && prefix === "xid" && xidInChinese(fallback)) || fallback);
  const text = translate(locale, key, values);
  return /\{\w+\}/.test(text) ? isolated(fallback) : text;
}

/** The first language of the browser that we speak; English otherwise. */
export function chooseLocale(stored: string | null, languages: readonly string[]): Locale {
  if (stored === "en" || stored === "zh-CN") return stored;
  for (const language of languages) {
    if (/^zh\b/i.test(language)) return "zh-CN";
    if (/^en\b/i.test(language)) return "en";
  }
  return "en";
}
