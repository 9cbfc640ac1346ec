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
  if (how === "push") history.pushState({ from: place.path } satisfies Step, "", href);
  else history.replaceState(history.state, "", href);
  publish();
}

/** Kept with an entry of the history: which page of ours led to it. */
interface Step {
  readonly from: string;
}

/** To `path`: the way it was left, filters and scroll and all, where it led here; else anew. */
export function goBack(path: string): void {
  if ((history.state as Step | null)?.from === path) history.back();
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
