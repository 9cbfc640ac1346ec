// Words of users, groups and credentials.
import { exactTime, parseTime } from "../../format/format";
import type { Words } from "../../i18n/locale";

export const stateWord = (state: string, { code }: Words): string => code("person-state", state, {}, state);

export const whenWord = (at: string | null): string => exactTime(parseTime(at));

/** Lifetimes of tokens that are offered, in seconds. */
export const LIFETIMES = [3600, 8 * 3600, 7 * 86_400, 30 * 86_400] as const;
export const USUAL_LIFETIME = 8 * 3600;

export const PLAIN_ID = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9-]/g, "-")
    .replace(/^-+|-+$/g, "");
