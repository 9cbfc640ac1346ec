// Where is the person? A store over the History API: path below the base, and the query string as state.
// The base path comes from the script's own address, so one build works below any prefix.
import { useSyncExternalStore } from "react";

export interface Place {
  readonly path: string;
  readonly query: string;
}

/** `/sub/` for `https://host/sub/assets/index-x.js`; `/` in development, where scripts live below `/src/`. */
export function baseOf(scriptUrl: string): string {
  const path = new URL(scriptUrl).pathname;
  const at = Math.max(path.lastIndexOf("/assets/"), path.lastIndexOf("/src/"));
  return at < 0 ? "/" : path.slice(0, at + 1);
}

export const basePath = baseOf(import.meta.url);

const listeners = new Set<() => void>();
let place = typeof location === "undefined" ? { path: "/", query: "" } : readPlace();

function readPlace(): Place {
  const inside = location.pathname.startsWith(basePath) ? location.pathname.slice(basePath.length) : location.pathname.slice(1);
  return { path: `/${inside}`, query: location.search };
}

function publish(): void {
  place = readPlace();
  for (const listener of listeners) listener();
}

if (typeof window !== "undefined") window.addEventListener("popstate", publish);

/** The address for an `href`: `/nodes?q=x` → `/sub/nodes?q=x`. */
export function hrefOf(to: string): string {
  return basePath + to.replace(/^\//, "");
}

export function navigate(to: string, how: "push" | "replace" = "push"): void {
  const href = hrefOf(to);
  if (href === location.pathname + location.search) return;
  if (how === "push") history.pushState(stepTo(pathOf(href), place.path, history.state as Step | null), "", href);
  else history.replaceState(history.state, "", href);
  publish();
}

const pathOf = (href: string): string => `/${href.slice(basePath.length).split("?")[0]}`;

/** Kept with an entry of the history: the page of the console that led to this one, and how many entries ago. */
export interface Step {
  readonly from: string;
  readonly entries: number;
}

/** What a new entry for the page `to` keeps, coming from `here`. A change of the query stays on the page: one more entry to go back over. */
export function stepTo(to: string, here: string, state: Step | null): Step | null {
  if (to !== here) return { from: here, entries: 1 };
  return state && { ...state, entries: state.entries + 1 };
}

/** Whence one came, the way it was left, filters and scroll and all; `path` for who came from nowhere. */
export function goBack(path: string): void {
  const step = history.state as Step | null;
  if (step?.from) history.go(-step.entries);
  else navigate(path);
}

export function currentPlace(): Place {
  return place;
}

export function usePlace(): Place {
  return useSyncExternalStore(subscribe, currentPlace);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
