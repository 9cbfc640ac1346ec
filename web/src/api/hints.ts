// When does a page ask again? The server hints "topic changed"; we refetch what is on screen, spread by a jitter.
// One tab of a browser listens for all (HTTP/1.1 allows about six streams per host); a tab in the background for a minute stops.
import type { QueryClient } from "@tanstack/react-query";
import { apiAddress, getJson } from "./fetch";
import { GPU_MAP_KEY } from "./queries";
import type { GpuMapAnswer } from "./types";

const JITTER_MS = 500;
const POLL_MS = 10_000;
const RETRY_MS = 3_000;
const HIDDEN_MS = 60_000;
const FAILURES_BEFORE_POLLING = 2;
/** A server that is stopping ends its streams first and still answers: the second failure asks again. */
const FAILURES_ASKED = 2;
const LARGE_MAP_NODES = 500;
const LARGE_MAP_MS = 10_000;
const CHANNEL = "fairlead.hints";

/** The stream broke or came back: whatever is on screen may be out of date, or the server out of reach, which only asking shows. */
export const EVERYTHING = "*";

/** A simulated cluster's time was changed: the screen shows another time. */
const TIME_MOVED = "clock";

type OnTopic = (topic: string) => void;

/** Starts listening; the returned function stops it. */
export function followHints(client: QueryClient, onTopic?: OnTopic): () => void {
  const stopRefetching = new AbortController();
  const waiting = new Set<string>();
  const refresh: OnTopic = (topic) => {
    onTopic?.(topic);
    if (waiting.has(topic)) return;
    waiting.add(topic);
    setTimeout(
      () => {
        waiting.delete(topic);
        void client.invalidateQueries({ queryKey: topic === EVERYTHING || topic === TIME_MOVED ? [] : [topic] });
      },
      Math.random() * JITTER_MS + patienceOf(client, topic),
    );
  };
  const bus = openBus(refresh);
  const tell: OnTopic = (topic) => {
    refresh(topic);
    bus?.postMessage(topic);
  };
  let stop = listenWhileVisible(() => leadOrFollow(tell), () => void client.invalidateQueries());
  stopRefetching.signal.addEventListener("abort", () => {
    stop();
    stop = () => {};
    bus?.close();
  });
  return () => stopRefetching.abort();
}

/** A map of thousands of nodes is asked again every ten seconds at most: it is the one large answer. */
function patienceOf(client: QueryClient, topic: string): number {
  if (topic !== GPU_MAP_KEY[0]) return 0;
  const state = client.getQueryState<GpuMapAnswer>(GPU_MAP_KEY);
  if (!state?.data || state.data.nodes.length < LARGE_MAP_NODES) return 0;
  return Math.max(0, state.dataUpdatedAt + LARGE_MAP_MS - Date.now());
}

function openBus(refresh: OnTopic): BroadcastChannel | null {
  if (!("BroadcastChannel" in globalThis)) return null;
  const bus = new BroadcastChannel(CHANNEL);
  bus.addEventListener("message", (event: MessageEvent<unknown>) => {
    if (typeof event.data === "string") refresh(event.data);
  });
  return bus;
}

/** Runs `start` while the tab is seen, or was a minute ago; on return everything is read anew. */
function listenWhileVisible(start: () => () => void, onReturn: () => void): () => void {
  let stop: (() => void) | null = start();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onChange = () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(() => {
        stop?.();
        stop = null;
      }, HIDDEN_MS);
    } else if (!stop) {
      stop = start();
      onReturn();
    }
  };
  document.addEventListener("visibilitychange", onChange);
  return () => {
    document.removeEventListener("visibilitychange", onChange);
    clearTimeout(timer);
    stop?.();
  };
}

/** The tab that holds the lock opens the stream; the others receive it over the bus and inherit the lock when it closes. */
function leadOrFollow(tell: OnTopic): () => void {
  if (!("locks" in navigator)) return openStream(tell);
  const giveUp = new AbortController();
  navigator.locks
    .request(CHANNEL, { signal: giveUp.signal }, () => {
      const close = openStream(tell);
      return new Promise<void>((release) =>
        giveUp.signal.addEventListener("abort", () => {
          close();
          release();
        }),
      );
    })
    .catch(() => {});
  return () => giveUp.abort();
}

/** The stream, with polling beside it after two failures. A stream the browser has given up on (an HTTP error) is opened anew. */
export function openStream(tell: OnTopic): () => void {
  let failures = 0;
  let stream: EventSource;
  let again: ReturnType<typeof setTimeout> | undefined;
  let stopPolling: (() => void) | null = null;
  const onOpen = () => {
    if (failures > 0) tell(EVERYTHING);
    failures = 0;
    stopPolling?.();
    stopPolling = null;
  };
  const onError = () => {
    failures += 1;
    if (failures <= FAILURES_ASKED) tell(EVERYTHING);
    if (failures >= FAILURES_BEFORE_POLLING) stopPolling ??= pollVersions(tell);
    if (stream.readyState === EventSource.CLOSED) again = setTimeout(connect, RETRY_MS);
  };
  const onChanged = (event: MessageEvent<string>) => {
    const topic = topicOf(event.data);
    if (topic) tell(topic);
  };
  function connect(): void {
    stream = new EventSource(apiAddress("/changes"));
    stream.addEventListener("open", onOpen);
    stream.addEventListener("error", onError);
    stream.addEventListener("changed", onChanged);
  }
  connect();
  return () => {
    clearTimeout(again);
    stream.close();
    stopPolling?.();
  };
}

/** `{"topic":"jobs","version":"185"}` → `jobs`; anything else is no hint. */
export function topicOf(data: string): string | null {
  try {
    const hint = JSON.parse(data) as { topic?: unknown };
    return typeof hint.topic === "string" ? hint.topic : null;
  } catch {
    return null;
  }
}

type Versions = Readonly<Record<string, string>>;

/** Topics whose version differs between two readings of `/versions`. */
export function movedTopics(before: Versions | null, now: Versions): string[] {
  if (!before) return [];
  return Object.keys(now).filter((topic) => now[topic] !== before[topic]);
}

function pollVersions(tell: OnTopic): () => void {
  let before: Versions | null = null;
  const timer = setInterval(() => {
    getJson<Versions>("/versions")
      .then((now) => {
        for (const topic of movedTopics(before, now)) tell(topic);
        before = now;
      })
      .catch(() => {});
  }, POLL_MS);
  return () => clearInterval(timer);
}
