// Which answers does a page hold? One hook per route. The first element of a key is the topic whose hints refresh it.
import { keepPreviousData, MutationCache, QueryCache, QueryClient, queryOptions, useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useAt } from "../past/at";
import { ApiError, getJson, postJson, sendWrite, type WriteMethod } from "./fetch";
import { leaveIfSignedOut } from "./session";
import type { TimeRange } from "../charts/range";
import type { AuditPage, BoundsChange, ChartAnswer, ClockFace, ClockMoved, ClockOrder, ComponentDetail, ComponentList, CredentialList, DataSetDetail, DataSetList, EndedOperationPage, GpuList, GroupList, GpuMapAnswer, HealthPage, Holder, HolderGroupList, HolderList, IdleList, InstanceList, JobClone, JobCost, JobDetail, JobFormList, JobManifest, JobList, Me, MyWork, NodeDetail, NodeList, OperationDetail, OperationList, Overview, OwnRights, PastTimes, Preview, PriceList, QuotaAnswer, QuotaEffects, QuotaTreePage, QuotaWaitingList, SearchAnswer, ServingList, StoreChecked, UsageDays, UsageList, UserList, UserRow } from "./types";

export const GPU_MAP_KEY = ["gpus", "/gpus/map"] as const;
/** Hints come sooner; this bounds the age of what is shown where they do not. */
const BOARD_REFRESH_MS = 30_000;
/** As the contract has it: a chart of half an hour moves by a fortieth meanwhile. */
const CHART_REFRESH_MS = 45_000;

export function newQueryClient(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({ onError: onSignedOut }),
    mutationCache: new MutationCache({ onError: onSignedOut }),
    defaultOptions: {
      queries: { retry: mayRetry, retryDelay: (n) => Math.min(8000, 500 * 2 ** n), staleTime: 2_000, gcTime: 60_000, refetchOnWindowFocus: false },
    },
  });
}

/** Whatever asks: a browser that is signed out goes to sign in, and comes back to this page. */
function onSignedOut(error: Error): void {
  if (error instanceof ApiError && (error.code === "signed-out" || error.code === "no-user")) void leaveIfSignedOut(error.code);
}

/** Retries for a server that is starting (503) or unreachable; a refusal is final. So is a timeout of a source (504): three more waits would not help. */
export function mayRetry(failures: number, error: Error): boolean {
  return failures < 3 && error instanceof ApiError && [0, 502, 503].includes(error.status);
}

function useAnswer<T>(topic: string, path: string, params?: URLSearchParams, enabled = true, refreshMs: number | false = BOARD_REFRESH_MS) {
  const isPast = params?.has("at") ?? false;
  return useQuery({
    queryKey: [topic, path, params?.toString() ?? ""],
    queryFn: ({ signal }) => getJson<T>(path, params, signal),
    placeholderData: keepPreviousData,
    refetchInterval: isPast ? false : refreshMs,
    enabled,
    ...(isPast ? PAST_ANSWER : {}),
  });
}

/** What was does not change; a moment that cannot be shown is refused at once. */
const PAST_ANSWER = { staleTime: Number.POSITIVE_INFINITY } as const;

/** The moment of the page as a parameter; `undefined` of the present. */
function useAtParams(): URLSearchParams | undefined {
  const at = useAt();
  return useMemo(() => (at === null ? undefined : new URLSearchParams({ at })), [at]);
}

/** Which moments can be shown. A console without a ledger answers 404: then there are none. */
export const usePast = () => useQuery({ queryKey: ["past"], queryFn: ({ signal }) => getJson<PastTimes>("/past", undefined, signal), refetchInterval: ({ state }) => (state.error ? false : BOARD_REFRESH_MS), retry: false });

const segment = encodeURIComponent;

export const useMe = () => useQuery({ queryKey: ["me"], queryFn: ({ signal }) => getJson<Me>("/me", undefined, signal), staleTime: 60_000, refetchInterval: 60_000 });
const CLOCK_KEY = ["clock"] as const;
/** Interval while a run advances the time: its progress is shown. */
const RUN_REFRESH_MS = 500;

/** The clock of a cluster whose time can be moved; nothing is asked of any other. */
export function useClockFace() {
  const enabled = useMe().data?.features.clock ?? false;
  return useQuery({
    queryKey: CLOCK_KEY,
    queryFn: ({ signal }) => getJson<ClockFace>("/clock", undefined, signal),
    enabled,
    refetchInterval: ({ state }) => (state.data?.until ? RUN_REFRESH_MS : BOARD_REFRESH_MS),
  });
}

/** Sends an order to the clock. A restarted server has another token, which `/me` returns. */
export function useMoveClock(csrf: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (order: ClockOrder) => postJson<ClockMoved>("/clock", order, csrf),
    onSuccess: (moved) => client.setQueryData(CLOCK_KEY, moved.clock),
    onError: (error) => (error instanceof ApiError && error.code === "csrf" ? client.invalidateQueries({ queryKey: ["me"] }) : undefined),
  });
}

export const useOverview = () => useAnswer<Overview>("overview", "/overview", useAtParams());
/** Up to 40,000 cells: comparing two answers cell by cell would cost more than drawing the new one. */
export function useGpuMap() {
  const params = useAtParams();
  return useQuery({
    queryKey: params ? [...GPU_MAP_KEY, params.toString()] : GPU_MAP_KEY,
    queryFn: ({ signal }) => getJson<GpuMapAnswer>("/gpus/map", params, signal),
    structuralSharing: false,
    ...(params ? { ...PAST_ANSWER, placeholderData: keepPreviousData } : { refetchInterval: BOARD_REFRESH_MS }),
  });
}
export const useMine = (params: URLSearchParams) => useAnswer<MyWork>("jobs", "/mine", params);
/** A pod's row, wherever its list has it; `null`: it holds no GPU. Nothing is asked for `null`. */
export function useHolder(key: string | null) {
  const [namespace = "", name = ""] = key?.split("/") ?? [];
  return useQuery({
    queryKey: ["gpus", "/holders", "one", key],
    queryFn: ({ signal }) => holderCalled(namespace, name, signal),
    refetchInterval: BOARD_REFRESH_MS,
    enabled: key !== null,
  });
}

/** The API finds all names that contain the one asked for. */
export async function holderCalled(namespace: string, name: string, signal: AbortSignal): Promise<Holder | null> {
  if (!name) return null;
  for await (const rows of pagesOf<Holder>("/holders", new URLSearchParams({ namespace, q: name }), signal)) {
    const found = rows.find((row) => row.namespace === namespace && row.name === name);
    if (found) return found;
  }
  return null;
}

export const useHolders = (params: URLSearchParams, enabled = true) => useAnswer<HolderList>("gpus", "/holders", params, enabled);
/** The pods of several groups at once, each in its place. */
export const useHoldersOf = (asked: readonly URLSearchParams[]) =>
  useQueries({
    queries: asked.map((params) => ({ queryKey: ["gpus", "/holders", params.toString()], queryFn: ({ signal }: { signal: AbortSignal }) => getJson<HolderList>("/holders", params, signal), refetchInterval: BOARD_REFRESH_MS })),
  });
export const useHolderGroups = (params: URLSearchParams, enabled = true) => useAnswer<HolderGroupList>("gpus", "/holders/groups", params, enabled);
export const useGpus = (params: URLSearchParams, enabled = true) => useAnswer<GpuList>("gpus", "/gpus", params, enabled);
export const useNodes = (params: URLSearchParams, enabled = true) => useAnswer<NodeList>("nodes", "/nodes", params, enabled);
const ROWS_PER_PAGE = 500;

async function* pagesOf<Row>(path: string, filters: URLSearchParams, signal: AbortSignal): AsyncGenerator<readonly Row[]> {
  let seen = 0;
  for (let page = 1; ; page += 1) {
    const asked = new URLSearchParams([...filters, ["size", String(ROWS_PER_PAGE)], ["page", String(page)]]);
    // oxlint-disable-next-line no-await-in-loop -- this page determines whether there is a next one
    const { items, total } = await getJson<{ items: readonly Row[]; total: number }>(path, asked, signal);
    yield items;
    seen += items.length;
    if (items.length === 0 || seen >= total) return;
  }
}

/** The names of all nodes that filters match, page by page; nothing is asked for `null`. */
export function useNodeNames(filters: URLSearchParams | null) {
  return useQuery({
    queryKey: ["nodes", "names", filters?.toString() ?? ""],
    queryFn: ({ signal }) => allNames(filters ?? new URLSearchParams(), signal),
    placeholderData: keepPreviousData,
    refetchInterval: BOARD_REFRESH_MS,
    enabled: filters !== null,
  });
}

async function allNames(filters: URLSearchParams, signal: AbortSignal): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const nodes of pagesOf<{ name: string }>("/nodes", new URLSearchParams([...filters, ["fields", "name"]]), signal)) names.push(...nodes.map((node) => node.name));
  return names;
}

export const useJobs = (params: URLSearchParams, enabled = true) => useAnswer<JobList>("jobs", "/jobs", params, enabled);
/** Objects of serving jobs are not followed: no hint comes when they change. */
const SERVING_REFRESH_MS = 10_000;
export const useServing = (params: URLSearchParams) => useAnswer<ServingList>("serving", "/serving", params, true, SERVING_REFRESH_MS);
/** Claims and data sets are read while a page shows them; a hint comes when one has changed. */
export const useDatasets = (params: URLSearchParams) => useAnswer<DataSetList>("datasets", "/datasets", params, true, SERVING_REFRESH_MS);
export const useDataset = (namespace: string, name: string) => useAnswer<DataSetDetail>("datasets", `/datasets/${segment(namespace)}/${segment(name)}`, undefined, true, SERVING_REFRESH_MS);
/** Not followed; a hint about operations comes when one has begun or ended. */
export const useComponents = (params: URLSearchParams) => useAnswer<ComponentList>("operations", "/components", params, true, SERVING_REFRESH_MS);
export const useComponent = (id: string) => useAnswer<ComponentDetail>("operations", `/components/${segment(id)}`, undefined, true, SERVING_REFRESH_MS);
export const useOperations = (params: URLSearchParams) => useAnswer<OperationList>("operations", "/operations", params, true, SERVING_REFRESH_MS);
/** Rows of the history never change; newer ones arrive when records are removed, after a week. */
export const useOperationHistory = (params: URLSearchParams, enabled: boolean) => useAnswer<EndedOperationPage>("operations", "/operation-history", params, enabled, 60_000);
/** Its steps take seconds; hints come at most once a second. */
const OPERATION_REFRESH_MS = 3_000;
export const useOperation = (id: string) => useAnswer<OperationDetail>("operations", `/operations/${segment(id)}`, undefined, true, OPERATION_REFRESH_MS);
export const useQuota = (params: URLSearchParams, enabled = true) => useAnswer<QuotaAnswer>("quota", "/quota/usage", params, enabled);

export const useQuotaWaiting = (params: URLSearchParams) => useAnswer<QuotaWaitingList>("quota", "/quota/waiting", params);
/** The ledger grows by the minute; folded days of a long period take the server a moment. */
const LEDGER_REFRESH_MS = 60_000;
export const useUsage = (params: URLSearchParams, enabled = true) => useAnswer<UsageList>("usage", "/usage", params, enabled, LEDGER_REFRESH_MS);
export const useUsageDays = (params: URLSearchParams) => useAnswer<UsageDays>("usage", "/usage/days", params, true, LEDGER_REFRESH_MS);
export const useIdle = (params: URLSearchParams) => useAnswer<IdleList>("usage", "/idle", params, true, LEDGER_REFRESH_MS);
export const usePrices = () => useAnswer<PriceList>("prices", "/prices", new URLSearchParams({ size: ROWS_PER_PAGE.toString() }), true, LEDGER_REFRESH_MS);
export const useJobCost = (id: KeptJob) => useAnswer<JobCost>("usage", `${jobPath(id)}/cost`, uidOf(id), true, LEDGER_REFRESH_MS);

/** Also read by the frame of every page, because every page shows failures. */
export const useHealth = () => useAnswer<HealthPage>("health", "/health");
export const useQuotaTree = () => useAnswer<QuotaTreePage>("quota", "/quota/tree");

/** What would happen with these bounds; asked anew when the cluster changes. Nothing is written. */
export function useWhatIf(changes: readonly BoundsChange[], csrf: string | undefined) {
  return useQuery({
    queryKey: ["quota", "what-if", changes],
    queryFn: () => postJson<QuotaEffects>("/quota/what-if", { changes }, csrf ?? ""),
    placeholderData: keepPreviousData,
    enabled: csrf !== undefined && changes.length > 0,
  });
}

/** Results of a search. Of an older search only results that also match the newer text may still be shown. */
export function useSearch(q: string) {
  return useQuery({
    queryKey: ["search", q],
    queryFn: ({ signal }) => getJson<SearchAnswer>("/search", new URLSearchParams({ q }), signal),
    placeholderData: keepPreviousData,
    retry: false,
    enabled: q !== "",
  });
}

export function useNode(name: string | null) {
  const params = useAtParams();
  return useQuery({
    queryKey: ["nodes", "detail", name, params?.toString() ?? ""],
    queryFn: ({ signal }) => getJson<NodeDetail>(`/nodes/${segment(name ?? "")}`, params, signal),
    refetchInterval: params ? false : BOARD_REFRESH_MS,
    enabled: name !== null,
  });
}

export type Job = readonly [namespace: string, type: string, name: string];
/** `uid`: of an earlier job of this name, from the ledger. */
export type KeptJob = readonly [...Job, uid?: string];

const jobPath = ([namespace, type, name]: KeptJob): string => `/jobs/${[namespace, type, name].map(segment).join("/")}`;
const uidOf = ([, , , uid]: KeptJob): URLSearchParams | undefined => (uid === undefined ? undefined : new URLSearchParams({ uid }));

export function useJob(id: KeptJob | null) {
  const at = useAtParams();
  const params = at ?? (id ? uidOf(id) : undefined);
  return useQuery({
    queryKey: ["jobs", "detail", ...(id ?? []), params?.toString() ?? ""],
    queryFn: ({ signal }) => getJson<JobDetail>(id ? jobPath(id) : "", params, signal),
    refetchInterval: at ? false : BOARD_REFRESH_MS,
    enabled: id !== null,
  });
}

export function useJobInstances(id: Job) {
  return useQuery({
    queryKey: ["jobs", "instances", ...id],
    queryFn: ({ signal }) => getJson<InstanceList>(`${jobPath(id)}/instances`, undefined, signal),
    refetchInterval: BOARD_REFRESH_MS,
  });
}

/** Read from the API server itself, so only while it is shown. */
export function useJobManifest(id: KeptJob) {
  return useQuery({
    queryKey: ["manifest", ...id],
    queryFn: ({ signal }) => getJson<JobManifest>(`${jobPath(id)}/manifest`, uidOf(id), signal),
    staleTime: 0,
  });
}

/**
 * A window that ends now is one question however far it has moved: a reading that fails leaves the last good one on screen.
`range` at the time of the request determines the start and the end.
 */
export function useChart(query: string, params: URLSearchParams, range: TimeRange, enabled: boolean) {
  return useQuery({ ...chartAsked(query, params, range), placeholderData: keepPreviousData, enabled });
}

export const chartAsked = (query: string, params: URLSearchParams, range: TimeRange) =>
  queryOptions({
    queryKey: ["charts", query, range.window ?? `${range.from}-${range.to}`, params.toString()],
    queryFn: ({ signal }) => getJson<ChartAnswer>(`/charts/${query}`, within(params, range), signal),
    refetchInterval: CHART_REFRESH_MS,
  });

function within(params: URLSearchParams, { from, to }: TimeRange): URLSearchParams {
  const asked = new URLSearchParams(params);
  asked.set("from", String(from));
  asked.set("to", String(to));
  return asked;
}

export const useUsers = (params: URLSearchParams) => useAnswer<UserList>("users", "/users", params);
export const useGroups = (params: URLSearchParams) => useAnswer<GroupList>("groups", "/groups", params);
export const useAudit = (params: URLSearchParams) => useAnswer<AuditPage>("audit", "/audit", params, true, 10_000);
export const useRights = () => useQuery({ queryKey: ["me", "rights"], queryFn: ({ signal }) => getJson<OwnRights>("/me/rights", undefined, signal), staleTime: 0 });

/** `path`: of the user or of `/me`; its credentials are read from the API server itself. */
export const useCredentials = (path: string) => useQuery({ queryKey: ["credentials", path], queryFn: ({ signal }) => getJson<CredentialList>(`${path}/tokens`, undefined, signal), staleTime: 0 });

/** Kinds of jobs do not change while a form is filled in. */
export const useJobForms = () => useQuery({ queryKey: ["job-types"], queryFn: ({ signal }) => getJson<JobFormList>("/job-types", undefined, signal), staleTime: 60_000 });

/** The body of a new job like this one; nothing is asked for `null`. Once: what is typed afterwards is kept. */
export function useJobClone(id: Job | null) {
  return useQuery({
    queryKey: ["job-clone", ...(id ?? [])],
    queryFn: ({ signal }) => getJson<JobClone>(`/jobs/${(id ?? []).map(segment).join("/")}/clone`, undefined, signal),
    enabled: id !== null,
    staleTime: Infinity,
    retry: false,
  });
}

const ARRIVAL_MS = 3_000;
const LOOK_MS = 150;

/** Makes the user of an administrator who has none. The server replaces the sign-in, so whatever was read before is read anew, once `/me` has the user. */
export function useOwnUser(csrf: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (userName: string) => {
      await postJson<UserRow>("/me/user", { userName }, csrf);
      await arrival(() =>
        getJson<Me>("/me").then(
          (me) => me.user.id !== "",
          () => false,
        ),
      );
    },
    onSettled: () => client.invalidateQueries(),
  });
}

/** Until the console shows a job that was just created, or for three seconds. */
export async function waitForJob(id: Job): Promise<void> {
  await arrival(() =>
    getJson(jobPath(id)).then(
      () => true,
      () => false,
    ),
  );
}

/** The console keeps its answer about serving jobs for five seconds. */
const SERVING_ARRIVAL_MS = 7_000;
const SERVING_LOOK_MS = 700;

/** Until the console shows a serving job that was just created, or for seven seconds. `version`: empty if the server chose it. */
export async function waitForServing(params: URLSearchParams, version: string): Promise<void> {
  await arrival(
    () =>
      getJson<ServingList>("/serving", params).then(
        ({ items }) => items.some((each) => version === "" || each.version === version),
        () => false,
      ),
    SERVING_ARRIVAL_MS,
    SERVING_LOOK_MS,
  );
}

/** Until the server shows what was written, or for `patienceMs`. */
async function arrival(isThere: () => Promise<boolean>, patienceMs = ARRIVAL_MS, pauseMs = LOOK_MS): Promise<void> {
  const end = performance.now() + patienceMs;
  while (performance.now() < end) {
    // oxlint-disable-next-line no-await-in-loop -- each look comes after the one before
    if (await isThere()) return;
    // oxlint-disable-next-line no-await-in-loop -- as above
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

export interface WriteOrder {
  readonly method: WriteMethod;
  readonly path: string;
  readonly body: object | null;
  readonly version?: string | undefined;
  readonly params?: URLSearchParams;
}

/** Sends writes. What lists show is read anew after one that succeeds. */
export function useWrite<T>() {
  const client = useQueryClient();
  const csrf = useMe().data?.csrf ?? "";
  return useMutation({
    mutationFn: ({ method, path, body, version, params }: WriteOrder) => sendWrite<T>(method, path, body, csrf, version, params),
    onSuccess: () => Promise.all([["users"], ["groups"], ["credentials"], ["audit"], ["jobs"], ["datasets"], ["operations"], ["prices"], ["usage"]].map((queryKey) => client.invalidateQueries({ queryKey }))),
    onError: (error) => (error instanceof ApiError && error.code === "csrf" ? client.invalidateQueries({ queryKey: ["me"] }) : undefined),
  });
}

/** Whether a console could use a database. Neither the password nor the answer is kept. */
export function useStoreCheck() {
  const csrf = useMe().data?.csrf ?? "";
  return useMutation({ mutationFn: (order: { url: string; password: string }) => postJson<StoreChecked>("/components/console/store-check", order, csrf), gcTime: 0 });
}

/** What this write would change, or why it would be refused. Nothing is written. */
/** `refreshMs`: how often it is asked again of a cluster that changes; `false` = never. */
export function usePreview<T = Preview>(order: WriteOrder | null, refreshMs: number | false = false) {
  const csrf = useMe().data?.csrf;
  return useQuery({
    queryKey: ["preview", order && [order.method, order.path, order.body, order.version, order.params?.toString()]],
    queryFn: () => {
      const { method, path, body, version, params } = order as WriteOrder;
      return sendWrite<T>(method, path, body, csrf ?? "", version, new URLSearchParams([...(params ?? []), ["dryRun", "true"]]));
    },
    placeholderData: keepPreviousData,
    retry: false,
    refetchInterval: refreshMs,
    staleTime: 0,
    enabled: order !== null && csrf !== undefined,
  });
}
