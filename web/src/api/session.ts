// Signing in and out. Each ends with a fresh load of the page: nothing of the one before stays in memory.
import { apiAddress, getJson, postJson, sendDelete } from "./fetch";
import type { SignInMethods } from "./types";
import { currentPlace, hrefOf } from "../router/router";

export const SIGN_IN = "/signin";

/** A path of the console to go to after signing in; anything else is the first page. */
export function nextOf(query: string): string {
  const next = new URLSearchParams(query).get("next") ?? "/";
  return next.startsWith("/") && !next.startsWith("//") && !next.includes("\\") ? next : "/";
}

/** Where to sign in from `path` with `query`, and come back. */
export function signInFrom(path: string, query: string): string {
  const here = `${path}${query}`;
  return here === "/" ? SIGN_IN : `${SIGN_IN}?${new URLSearchParams({ next: here }).toString()}`;
}

/** The server does not know this browser, or not as a user any more: to the page where one signs in, once. */
function leaveToSignIn(why: string): void {
  const { path, query } = currentPlace();
  if (path === SIGN_IN) return;
  const to = signInFrom(path, query);
  location.replace(hrefOf(why === "no-user" ? `${to}${to.includes("?") ? "&" : "?"}why=no-user` : to));
}

/** The same, unless the browser has a newer sign-in by now: an answer to the cookie before may come after it ("look as"). */
export async function leaveIfSignedOut(why: string): Promise<void> {
  if (why === "signed-out" && (await isSignedIn())) return;
  leaveToSignIn(why);
}

const CODE = "#code=";
let kept: string | null = null;

/** The one-time code of the address, taken out of it so that neither history nor a copied address has it. */
export function keepCode(): boolean {
  if (!location.hash.startsWith(CODE)) return false;
  kept = decodeURIComponent(location.hash.slice(CODE.length));
  history.replaceState(history.state, "", location.pathname + location.search);
  return true;
}

/** The code, once. */
export function takeCode(): string | null {
  const code = kept;
  kept = null;
  return code;
}

export async function signIn(way: "token" | "code", secret: string): Promise<void> {
  await postJson("/signin", { way, secret }, "");
}

/** Whether this browser is signed in already. */
export async function isSignedIn(): Promise<boolean> {
  return await getJson("/me").then(
    () => true,
    () => false,
  );
}

export const readMethods = (signal: AbortSignal): Promise<SignInMethods> => getJson<SignInMethods>("/signin/methods", undefined, signal);

export const providerAddress = (next: string): string => apiAddress("/signin/oidc/start", new URLSearchParams({ next }));

export function enter(next: string): void {
  location.replace(hrefOf(next));
}

export async function signOut(csrf: string): Promise<void> {
  await sendDelete("/signin", csrf);
  location.assign(hrefOf(SIGN_IN));
}

export function useActAs(csrf: string, onFault: (error: unknown) => void): (user: string) => void {
  return (user) => {
    postJson("/me/as", { user }, csrf).then(() => location.assign(hrefOf("/")), onFault);
  };
}
