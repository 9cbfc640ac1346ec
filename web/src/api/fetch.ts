// How is the server asked? One GET and one POST with a typed error; `X-Request-Id` travels with every failure so that a person can name it.
import { basePath } from "../router/router";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null,
    readonly requestId: string | null,
  ) {
    super(message);
  }
}

interface ErrorBody {
  readonly code?: string;
  readonly error?: string;
  readonly hint?: string | null;
  readonly requestId?: string | null;
}

export function apiAddress(path: string, params?: URLSearchParams): string {
  const query = params?.toString();
  return `${basePath}api/v1${path}${query ? `?${query}` : ""}`;
}

/**
 * Reads one answer. Network failures become `ApiError` 0 `unreachable`. An answer that is not in our form, whatever its status, is not the
 * console's: a proxy gave it in its place (`proxy`), and it would give it on every address.
 */
export async function getJson<T>(path: string, params?: URLSearchParams, signal?: AbortSignal): Promise<T> {
  const response = await ask(apiAddress(path, params), signal);
  return await bodyOf<T>(response);
}

/** Sends one write. `csrf` is the server's own token from `/me`. */
export async function postJson<T>(path: string, body: object, csrf: string): Promise<T> {
  const headers = { "Content-Type": "application/json", "X-Fairlead-Csrf": csrf };
  const response = await ask(apiAddress(path), undefined, { method: "POST", headers, body: JSON.stringify(body) });
  return await bodyOf<T>(response);
}

export async function sendDelete(path: string, csrf: string): Promise<void> {
  const response = await ask(apiAddress(path), undefined, { method: "DELETE", headers: { "X-Fairlead-Csrf": csrf } });
  await bodyOf(response);
}

/** Reads an answer piece by piece; aborting `signal` ends the request. */
export async function openStream(address: string, signal: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const response = await ask(address, signal);
  if (!response.ok) throw await errorOf(response);
  if (!response.body) throw new ApiError(0, "unreachable", "the answer has no body", null, null);
  return response.body.getReader();
}

async function ask(address: string, signal?: AbortSignal, more: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(address, { ...more, headers: { Accept: "application/json", ...more.headers }, credentials: "same-origin", signal: signal ?? null });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, "unreachable", String((cause as Error).message), null, null);
  }
}

async function bodyOf<T>(response: Response): Promise<T> {
  if (!response.ok) throw await errorOf(response);
  const text = await response.text();
  try {
    return JSON.parse(text) as T;
  } catch {
    throw ofProxy(response);
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as ErrorBody | null;
  if (!body?.code) return ofProxy(response);
  return new ApiError(response.status, body.code, body.error ?? response.statusText, body.hint ?? null, body.requestId ?? response.headers.get("X-Request-Id"));
}

function ofProxy(response: Response): ApiError {
  return new ApiError(response.status, "proxy", `HTTP ${response.status} ${response.statusText}`.trim(), null, response.headers.get("X-Request-Id"));
}
