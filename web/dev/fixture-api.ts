// The API of the page for `npm run dev` and `npm run preview` without a server. The cookie `world` chooses default, huge, empty or faults.
// `preview` answers pages with the strict policy of the real server, so that a violation shows here first.
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";
import { makeWorld, random, type World, type WorldName } from "./world.ts";

const worlds = new Map<WorldName, World>();
const NONCE = "dev-nonce";
const POLICY = `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${NONCE}'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;

export function fixtureApi({ strict }: { strict: boolean }): Plugin {
  return {
    name: "fixture-api",
    configureServer: (server) => void server.middlewares.use(answer),
    configurePreviewServer: (server) => {
      server.middlewares.use(answer);
      if (strict) server.middlewares.use((request, response, next) => page(server.config.build.outDir, request, response, next));
    },
  };
}

type Next = () => void;

function page(outDir: string, request: IncomingMessage, response: ServerResponse, next: Next): void {
  if (!request.headers.accept?.includes("text/html")) return next();
  const html = readFileSync(`${outDir}/index.html`, "utf8").replaceAll("./assets/", "/assets/").replaceAll("./favicon.svg", "/favicon.svg").replaceAll("__CSP_NONCE__", NONCE).replaceAll("__BUILD__", "0.1.0");
  response.setHeader("Content-Security-Policy", POLICY);
  response.setHeader("Content-Type", "text/html; charset=utf-8");
  response.end(html);
}

function answer(request: IncomingMessage, response: ServerResponse, next: Next): void {
  const url = new URL(request.url ?? "/", "http://x");
  if (!url.pathname.startsWith("/api/v1/")) return next();
  const name = (/world=(\w+)/.exec(request.headers.cookie ?? "")?.[1] ?? "default") as WorldName;
  if (!worlds.has(name)) worlds.set(name, makeWorld(name));
  if (url.pathname === "/api/v1/changes") return stream(request, response);
  const body = route(worlds.get(name) as World, url.pathname.slice(7), url.searchParams);
  const json = JSON.stringify(body ?? { ok: false, status: 404, code: "not-found", error: `there is no ${url.pathname}`, hint: "", requestId: "dev-1" });
  response.statusCode = body ? 200 : 404;
  response.setHeader("Content-Type", "application/json");
  response.setHeader("Content-Encoding", "gzip");
  response.end(gzipSync(json, { level: 1 }));
}

function stream(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
  response.write("retry: 3000\n\n");
  const timer = setInterval(() => response.write(`event: changed\ndata: {"topic":"overview","version":"${Date.now()}"}\n\n`), 5000);
  request.on("close", () => clearInterval(timer));
}

const stamp = () => ({ generatedAt: new Date().toISOString(), stale: false, version: "184", warnings: [] as unknown[] });

function route(world: World, path: string, query: URLSearchParams): object | null {
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  const key = parts.length > 1 && parts[0] !== "charts" && path !== "/gpus/map" && !path.startsWith("/quota/") ? `${parts[0]}/one` : path;
  switch (key) {
    case "/me":
      return { user: { name: "admin", role: "admin" }, csrf: "x", cluster: { name: "laptop", world: "simulated", version: "184" }, clock: { now: new Date().toISOString(), speed: 1, isPaused: false, since: null, until: null }, features: { prometheus: false, clock: false, historySeconds: 3600 }, version: "0.1.0", build: "0.1.0" };
    case "/overview":
      return { ...stamp(), ...world.overview, ...(world.name === "faults" ? { stale: true, warnings: [{ code: "prometheus-unreachable", source: "gpu-telemetry", message: "http://127.0.0.1:9090 refused the connection.", hint: "set `--prometheus`, or leave it empty to use the built-in series", values: {} }] } : {}) };
    case "/gpus/map":
      return { ...stamp(), ...world.map };
    case "/nodes":
      return nodes(world, query);
    case "/jobs":
      return jobs(world, query);
    case "/quota/usage":
      return quota(world, query);
    case "/quota/waiting":
      return { ...list([], query, {}, {}, { code: "quota-waiting-none", values: {}, text: "" }) };
    case "/quota/tree":
      return { ...stamp(), sentence: { code: "quota-none", values: {}, text: "" }, resources: [], items: [], faults: [] };
    case "/versions":
      return { overview: "1" };
    case "nodes/one":
      return node(world, parts[1] ?? "");
    case "jobs/one":
      return job(world, parts);
    default:
      return parts[0] === "charts" ? chart(world, parts[1] ?? "", query) : null;
  }
}

function list<Row extends object>(rows: readonly Row[], query: URLSearchParams, filters: Record<string, (row: Row) => string>, facets: Record<string, readonly string[]>, sentence: object): object {
  let kept = rows.filter((row) => Object.entries(filters).every(([key, of]) => query.getAll(key).length === 0 || query.getAll(key).includes(of(row))));
  const q = query.get("q")?.toLowerCase();
  if (q) kept = kept.filter((row) => JSON.stringify(row).toLowerCase().includes(q));
  const sort = query.get("sort");
  if (sort) kept = kept.toSorted((a, b) => compare(a, b, sort.replace(/^-/, ""), sort.startsWith("-") ? -1 : 1));
  const page = Number(query.get("page") ?? 1);
  const size = Number(query.get("size") ?? 50);
  return { ...stamp(), items: kept.slice((page - 1) * size, page * size), total: kept.length, page, size, facets, sentence };
}

function compare(a: object, b: object, key: string, way: number): number {
  const [x, y] = [a, b].map((row) => (row as Record<string, unknown>)[key] as number | string | null);
  if (x === y) return 0;
  if (x === null || x === undefined) return 1;
  if (y === null || y === undefined) return -1;
  return (x < y ? -1 : 1) * way;
}

const distinct = (values: readonly string[]) => [...new Set(values)].slice(0, 500);

function nodes(world: World, query: URLSearchParams): object {
  const rows = world.nodes;
  const o = world.overview;
  const sentence = rows.length ? { code: "nodes-faulty", values: { nodes: o.gpuNodes.total, gpus: o.gpus.total, allocated: o.gpus.allocated, unhealthy: 0, faulty: o.gpuNodes.faulty }, text: "…" } : { code: "nodes-none", values: {}, text: "" };
  const facets = { gpu_node: distinct(rows.filter((n) => n.gpusTotal).map((n) => n.name)), GPU: ["0", "1", "2", "3", "4", "5", "6", "7"], status: distinct(rows.map((n) => n.status)), mode: distinct(rows.map((n) => n.gpuMode)), model: distinct(rows.map((n) => n.gpuModel)) };
  return list(rows, query, { gpu_node: (n) => n.name, status: (n) => n.status, mode: (n) => n.gpuMode, model: (n) => n.gpuModel }, facets, sentence);
}

function jobs(world: World, query: URLSearchParams): object {
  const rows = world.jobs;
  const j = world.overview.jobs;
  const facets = { job_namespace: distinct(rows.map((r) => r.namespace)), job_type: distinct(rows.map((r) => r.type)), job_name: distinct(rows.map((r) => r.name)), user: distinct(rows.map((r) => r.user)), leaf: distinct(rows.map((r) => r.quotaPath)) };
  const sentence = rows.length ? { code: "jobs-waiting", values: { ...j, gpus: 38, waitSeconds: 4512 }, text: "…" } : { code: "jobs-none", values: {}, text: "" };
  return { ...list(rows, query, { job_namespace: (r) => r.namespace, job_type: (r) => r.type, job_name: (r) => r.name, job_status: (r) => r.status, user: (r) => r.user, leaf: (r) => r.quotaPath }, facets, sentence), missingTypes: [] };
}

function quota(world: World, query: URLSearchParams): object {
  const rows = world.quota;
  const facets = { path: distinct(rows.map((r) => r.path)), name: distinct(rows.map((r) => r.name)), resource: distinct(rows.map((r) => r.resource)) };
  const sentence = rows.length ? { code: "quota-starved", values: { leaves: 3, borrowing: 1, starved: 1 }, text: "…" } : { code: "quota-none", values: {}, text: "" };
  return { ...list(rows, query, { path: (r) => r.path, name: (r) => r.name, resource: (r) => r.resource }, facets, sentence), resources: facets.resource, faults: [] };
}

function node(world: World, name: string): object | null {
  const row = world.nodes.find((n) => n.name === name);
  const cells = world.gpuNodes.find((n) => n.name === name)?.gpus ?? [];
  if (!row) return null;
  const each = (row.gpuMemoryTotalMiB ?? 0) / Math.max(1, row.gpusTotal);
  const gpus = cells.map(([index, state, util, memory, celsius, idle, slices]) => ({
    index, uuid: `GPU-${name}-${index}`, model: row.gpuModel, mode: row.gpuMode === "share" ? "shared" : row.gpuMode, ...unitsOf(row.gpuMode, each, slices), coreAllocatedPercent: null, coreFreePercent: null, memoryTotalMiB: each, memoryAllocatedMiB: each, memoryUsedMiB: memory === null ? null : (memory / 100) * each, utilPercent: util, temperatureC: celsius, powerW: util === null ? null : 60 + util * 3,
    health: state === 3 ? "Unhealthy" : state === 5 ? "Unknown" : "Healthy", reason: state === 3 ? "XID 79" : "", lastXid: null, idleSeconds: idle, migInstances: [], flags: (idle ?? 0) > 3600 ? ["idle"] : [],
    pods: slices.map(([team], i) => ({ namespace: world.map.teams[team], name: `resnet50-worker-${index}-${i}`, container: "main", mode: row.gpuMode, units: row.gpuMode === "share" ? 3 : 0, corePercent: 0, job: "mpijob/resnet50", allocatedMiB: each, usedMiB: null, utilPercent: null })),
  }));
  return {
    ...stamp(), node: row, gpus, events: [],
    sharing: row.gpuMode === "share" ? { offers: true, placement: "", conflict: "", unitsFree: row.gpuUnitsTotal - row.gpuUnitsAllocated, largestFree: 11, largestFreeMiB: 11264 } : null, kubeletVersion: "v1.33.1", runtimeVersion: "containerd://2.1.1", osImage: "Debian GNU/Linux 12",
    conditions: [{ type: "Ready", status: row.status === "Ready" ? "True" : "False", reason: "KubeletReady", message: "kubelet is posting ready status", at: row.createdAt }],
    taints: row.schedulable ? [] : [{ key: "node.kubernetes.io/unschedulable", value: "", effect: "NoSchedule" }],
    labels: { "kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": row.instanceType, "nvidia.com/gpu.product": row.gpuModel },
    pods: gpus.flatMap((g) => g.pods.map((p) => ({ namespace: p.namespace, name: p.name, job: p.job, phase: "Running", status: "Running", terminating: false, pending: false, gpuIndexes: [g.index], units: p.units, gpus: 1, gpuMemoryAllocatedMiB: each, createdAt: new Date(Date.now() - 9e6).toISOString(), heldSince: new Date(Date.now() - 8e6).toISOString() }))),
  };
}

function unitsOf(mode: string, mib: number, slices: readonly (readonly [number, number])[]): object {
  const units = mode === "share" ? Math.floor(mib / 1024) : 0;
  const held = slices.reduce((sum, [, share]) => sum + share, 0);
  const unitsAllocated = Math.round(units * held);
  return { units, unitsAllocated, unitsFree: units - unitsAllocated, memoryFreeMiB: Math.max(0, Math.round(mib * (1 - held))) };
}

function job(world: World, [, namespace, type, name]: readonly string[]): object | null {
  const row = world.jobs.find((j) => j.namespace === namespace && j.type === type && j.name === name);
  if (!row) return null;
  const instances = Array.from({ length: row.instances.desired }, (_, i) => ({ name: `${row.name}-${i ? `worker-${i - 1}` : "launcher"}`, role: i ? "worker" : "launcher", status: row.status, node: row.nodes[0] ?? "", ip: "172.16.0.9", gpus: i ? 8 : 0, gpuIndexes: i ? [0, 1, 2, 3] : [], gpuUuids: [], gpuMemoryAllocatedMiB: 81920, gpuMemoryUsedMiB: 61920, gpuUtilPercent: i ? 83.2 : null, restarts: 0, ageSeconds: row.durationSeconds, isChief: i === 0, waiting: null }));
  return { ...stamp(), job: row, instances, events: [{ at: row.createdAt, type: "Normal", reason: "Created", object: `MPIJob/${row.name}`, message: "MPIJob is created.", count: 1 }] };
}

function chart(world: World, query: string, params: URLSearchParams): object {
  const from = Number(params.get("from"));
  const to = Number(params.get("to"));
  const top = Number(params.get("top") ?? 8);
  const step = Math.max(15, Math.ceil((to - from) / 1000 / 238 / 15) * 15);
  const labels = chartLabels(world, query, params);
  const rnd = random(query.length * 31);
  const high = query.includes("memory") && !query.includes("percent") ? 81920 : query.includes("gpus") ? 8 : query.includes("jobs") ? 20 : 100;
  const series = labels.slice(0, top).map((one) => {
    let value = high * (0.3 + 0.6 * rnd());
    const points: [number, number | null][] = [];
    for (let ms = from; ms <= to; ms += step * 1000) {
      value = Math.min(high, Math.max(0, value + high * (rnd() - 0.5) * 0.08));
      const gap = rnd() < 0.004;
      points.push([ms, gap ? null : high <= 20 ? Math.round(value) : Math.round(value * 10) / 10]);
    }
    return { labels: one, points };
  });
  const unit = query.includes("memory") && !query.includes("percent") ? "MiB" : query.includes("gpus") ? "GPUs" : query.includes("jobs") ? "jobs" : "percent";
  return { ...stamp(), title: query, unit, series, total: labels.length, shown: series.length, source: "built-in", query: `words of ${query}`, step };
}

function chartLabels(world: World, query: string, params: URLSearchParams): Record<string, string>[] {
  const lines: Record<string, string[]> = { "cluster-gpu-utilization": ["utilization"], "cluster-gpu-memory": ["used", "allocated", "total"], "cluster-gpus-allocated": ["allocated", "total"], "cluster-jobs": ["running", "pending", "succeeded", "failed"] };
  if (world.name === "empty") return [];
  if (lines[query]) return lines[query].map((line) => ({ line }));
  const chosen = params.getAll("gpu_node");
  const some = world.gpuNodes.filter((n) => chosen.length === 0 || chosen.includes(n.name));
  if (query.startsWith("node-")) return some.map((n) => ({ node: n.name }));
  if (query.startsWith("gpu-")) return some.flatMap((n) => n.gpus.map((g) => ({ node: n.name, gpu: String(g[0]), uuid: `GPU-${n.name}-${g[0]}` }))).filter((l) => params.getAll("GPU").length === 0 || params.getAll("GPU").includes(l.gpu));
  return world.jobs.filter((j) => j.status === "Running" && (!params.has("job_name") || params.getAll("job_name").includes(j.name))).map((j) => ({ namespace: j.namespace, type: j.type, job: j.name, instance: `${j.name}-worker-0` }));
}
