// Whose work is shown: a user or a namespace, from the address, else the user who is signed in, else the last choice in this browser.
import { readStored, store } from "../../app/stored";

export type Person = { readonly user: string } | { readonly namespace: string };

const KEY = "fairlead.me";

export function personIn(params: URLSearchParams): Person | null {
  const namespace = params.get("namespace");
  if (namespace) return { namespace };
  const user = params.get("user");
  return user ? { user } : null;
}

/** As a query of the address and of the API alike. */
export const queryOf = (person: Person | null): URLSearchParams => new URLSearchParams(person ?? {});

export const lastPerson = (): Person | null => personIn(new URLSearchParams(readStored(KEY) ?? ""));

export const remember = (person: Person | null): void => store(KEY, queryOf(person).toString());

/** The list of jobs names its filters otherwise. */
export const jobsQueryOf = (person: Person): URLSearchParams => new URLSearchParams("user" in person ? { user: person.user } : { job_namespace: person.namespace });
