// A made-up cluster for work on the page without a server: same shape as the API's answers, numbers from a seed. Not shipped.
import type { GpuMapAnswer, JobRow, MapNode, NodeRow, Overview, QuotaRow } from "../src/api/types";

export type WorldName = "default" | "huge" | "empty" | "faults";

export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const MODELS = [
  { name: "NVIDIA A100-SXM4-80GB", mib: 81920 },
  { name: "NVIDIA H100 80GB HBM3", mib: 81559 },
  { name: "Tesla T4", mib: 15360 },
] as const;
const TEAMS = ["team-vision", "team-nlp", "team-speech", "platform", "research", "ads", "search", "robotics", "safety", "infra"];

/** `[index, state, util %, memory used %, °C, idle seconds, slices]`: everything a card has, before the map's answer packs it. */
export type Card = [index: number, state: number, util: number | null, memory: number | null, celsius: number | null, idle: number | null, slices: [team: number, share: number][]];

export interface GpuNode {
  readonly name: string;
  readonly model: number;
  readonly mode: string;
  readonly status: string;
  readonly gpus: readonly Card[];
}

export interface World {
  readonly name: WorldName;
  readonly nodes: readonly NodeRow[];
  readonly gpuNodes: readonly GpuNode[];
  readonly map: Pick<GpuMapAnswer, "teams" | "models" | "modes" | "statuses" | "nodes">;
  readonly jobs: readonly JobRow[];
  readonly quota: readonly QuotaRow[];
  readonly overview: Omit<Overview, "generatedAt" | "stale" | "version" | "warnings">;
}

const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+/, "");

export function makeWorld(name: WorldName): World {
  const rnd = random(7);
  const gpuNodes = { default: 6, huge: 5000, empty: 0, faults: 12 }[name];
  const mapNodes: GpuNode[] = [];
  const nodes: NodeRow[] = [];
  const teams = name === "huge" ? [...TEAMS, ...Array.from({ length: 590 }, (_, i) => `lab-${i}`)] : TEAMS.slice(0, 3);
  for (let i = 0; i < gpuNodes; i += 1) {
    const model = name === "default" ? (i < 4 ? 0 : 2) : Math.floor(i / (gpuNodes / 3)) % 3;
    const mode = model === 2 ? "share" : "exclusive";
    const bad = name === "faults" ? i % 4 === 1 : i === 2;
    const notReady = name === "faults" && i % 5 === 2;
    const size = name === "huge" ? 8 : model === 2 ? 4 : 8;
    const gpus = Array.from({ length: size }, (_, g) => makeGpu(rnd, g, mode, teams.length, bad && g === 3, notReady, (i * 7 + Math.floor(g / 4)) % Math.min(teams.length, TEAMS.length)));
    const label = `${["a100", "h100", "t4"][model]}-${String(i + 1).padStart(name === "huge" ? 4 : 2, "0")}`;
    mapNodes.push({ name: label, model, mode, status: notReady ? "NotReady" : "Ready", gpus });
    nodes.push(nodeRow(label, i, model, mode, notReady, gpus, MODELS[model]?.mib ?? 0));
  }
  for (let i = 0; i < (name === "empty" ? 0 : 2); i += 1) nodes.push(cpuNode(i));
  const jobs = name === "empty" ? [] : Array.from({ length: name === "huge" ? 2000 : 34 }, (_, i) => makeJob(rnd, i, teams, mapNodes));
  const quota = name === "empty" ? [] : makeQuota(teams);
  return { name, nodes, gpuNodes: mapNodes, map: { teams, models: MODELS.map((m) => m.name), modes: MODES, statuses: STATUSES, nodes: mapNodes.map(packed) }, jobs, quota, overview: makeOverview(nodes, mapNodes, jobs, teams, quota, name) };
}

const MODES = ["exclusive", "share"];
const STATUSES = ["Ready", "NotReady"];

/** A node as the map's answer has it: numbers for words, no idle time as 0, a whole card as its holder's bare number. */
function packed({ name, model, mode, status, gpus }: GpuNode): MapNode {
  const cells = gpus.map(([, state, util, memory, celsius, idle, slices]): MapNode[4][number] => [state, util, memory, celsius, idle ?? 0, slices.length === 1 && slices[0]?.[1] === 1 ? slices[0][0] : slices]);
  return [name, model, MODES.indexOf(mode), STATUSES.indexOf(status), cells, gpus.every(([index], at) => index === at) ? [] : gpus.map(([index]) => index)];
}

function makeGpu(rnd: () => number, index: number, mode: string, teams: number, bad: boolean, silent: boolean, team: number): Card {
  if (bad) return [index, 3, null, null, 78, null, []];
  if (silent) return [index, 5, null, null, null, null, [[team, 1]]];
  const dice = rnd();
  if (mode === "share") {
    if (dice < 0.2) return [index, 0, 0, 1, 34, null, []];
    const n = 1 + Math.floor(rnd() * 3);
    return [index, 2, Math.round(rnd() * 90), Math.round(20 + rnd() * 60), Math.round(40 + rnd() * 25), 0, Array.from({ length: n }, () => [Math.floor(rnd() * teams), 0.25])];
  }
  if (dice < 0.18) return [index, 0, 0, 1, 31, null, []];
  if (dice < 0.2) return [index, 4, 12, 30, 45, 0, [[team, 1]]];
  if (dice < 0.34) return [index, 1, 0, Math.round(10 + rnd() * 30), 38, Math.round(rnd() * 9000), [[team, 1]]];
  return [index, 1, Math.round(35 + rnd() * 64), Math.round(30 + rnd() * 65), Math.round(50 + rnd() * 35), 0, [[team, 1]]];
}

function nodeRow(name: string, i: number, model: number, mode: string, notReady: boolean, gpus: readonly Card[], mib: number): NodeRow {
  const held = gpus.reduce((sum, g) => sum + g[6].reduce((a, s) => a + s[1], 0), 0);
  const reporting = gpus.filter((g) => g[2] !== null);
  return {
    name,
    ip: `10.0.${Math.floor(i / 250)}.${(i % 250) + 11}`,
    role: "<none>",
    status: notReady ? "NotReady" : "Ready",
    schedulable: i !== 3,
    gpuMode: mode,
    gpuModel: MODELS[model]?.name ?? "",
    isolation: "",
    gpusTotal: gpus.length,
    gpusAllocated: held,
    gpusUnhealthy: gpus.filter((g) => g[1] === 3).length,
    gpusDraining: gpus.filter((g) => g[1] === 4).length,
    gpuUnit: mode === "share" ? "GiB" : "",
    gpuUnitsTotal: mode === "share" ? gpus.length * Math.floor(mib / 1024) : 0,
    gpuUnitsAllocated: mode === "share" ? Math.floor((held * mib) / 1024) : 0,
    gpuUnitsPending: 0,
    gpuUnitsOvercommitted: 0,
    gpusReporting: reporting.length,
    gpuMemoryTotalMiB: gpus.length * mib,
    gpuMemoryAllocatedMiB: held * mib,
    gpuMemoryUsedMiB: reporting.length ? reporting.reduce((s, g) => s + ((g[3] ?? 0) / 100) * mib, 0) : null,
    gpuMemoryUsedOfMiB: reporting.length ? reporting.length * mib : null,
    gpuUtilPercent: reporting.length ? reporting.reduce((s, g) => s + (g[2] ?? 0), 0) / reporting.length : null,
    driverVersion: "550.54.15",
    instanceType: model === 2 ? "gn6i-c16g1.4xlarge" : "gn7e-c16g1.32xlarge",
    zone: `zone-${"abc"[i % 3]}`,
    createdAt: ago(86400 * (3 + (i % 40))),
    cpuTotalCores: 96,
    memoryTotalMiB: 786432,
  };
}

function cpuNode(i: number): NodeRow {
  const none = { gpusTotal: 0, gpusAllocated: 0, gpusUnhealthy: 0, gpusDraining: 0, gpuUnit: "", gpuUnitsTotal: 0, gpuUnitsAllocated: 0, gpuUnitsPending: 0, gpuUnitsOvercommitted: 0, gpusReporting: 0, gpuMemoryTotalMiB: null, gpuMemoryAllocatedMiB: null, gpuMemoryUsedMiB: null, gpuMemoryUsedOfMiB: null, gpuUtilPercent: null };
  return { ...none, name: `cpu-0${i + 1}`, ip: `10.0.9.${i + 11}`, role: i ? "<none>" : "control-plane", status: "Ready", schedulable: true, gpuMode: "none", gpuModel: "", isolation: "", driverVersion: "", instanceType: "g7.4xlarge", zone: "zone-a", createdAt: ago(86400 * 40), cpuTotalCores: 16, memoryTotalMiB: 65536 };
}

function makeJob(rnd: () => number, i: number, teams: readonly string[], nodes: readonly { name: string }[]): JobRow {
  const type = ["mpijob", "pytorchjob", "tfjob"][i % 3] ?? "mpijob";
  const status = i % 11 === 3 ? "Pending" : i % 7 === 2 ? "Failed" : i % 3 === 1 ? "Succeeded" : "Running";
  const asked = [1, 2, 4, 8, 16][Math.floor(rnd() * 5)] ?? 1;
  const running = status === "Running";
  const held = running ? asked : 0;
  const age = Math.round(300 + rnd() * 90_000);
  return {
    namespace: teams[i % teams.length] ?? "default",
    name: ["resnet50", "bert-large", "whisper-ft", "llama-sft", "mpi-test", "<img onerror=alert(1)>"][i % 6] + (i < 6 ? "" : `-${i}`),
    type,
    status,
    state: status.toUpperCase(),
    waiting: status === "Pending" ? { reason: "Unschedulable", message: `0/${nodes.length} nodes are available: insufficient nvidia.com/gpu (asked ${asked}, at most 2 free on one node).`, room: "", sentence: null, clauses: [] } : null,
    durationSeconds: age,
    heldSeconds: running ? age - 20 : null,
    gpusRequested: asked,
    gpusAllocated: held,
    gpuMemoryRequestedMiB: null,
    gpuMemoryAllocatedMiB: running ? held * 81920 : null,
    gpuMemoryUsedMiB: running ? held * 81920 * (0.2 + 0.7 * rnd()) : null,
    gpuMemoryUsedOfMiB: running ? held * 81920 : null,
    gpuUtilPercent: running ? rnd() * 100 : null,
    uid: `uid-${i}`,
    apiVersion: type === "mpijob" ? "kubeflow.org/v2beta1" : "kubeflow.org/v1",
    user: ["lin", "mei", "ada"][i % 3] ?? "",
    quotaPath: `root.${teams[i % teams.length]}`,
    createdAt: ago(age + 40),
    startedAt: status === "Pending" ? null : ago(age),
    finishedAt: running || status === "Pending" ? null : ago(200),
    deletedAt: i % 13 === 5 ? ago(100) : null,
    instances: { desired: Math.ceil(asked / 8) + 1, running: running ? Math.ceil(asked / 8) + 1 : 0, unknown: 0, pending: status === "Pending" ? 2 : 0, succeeded: 0, failed: status === "Failed" ? 1 : 0 },
    nodes: running ? [nodes[i % Math.max(1, nodes.length)]?.name ?? ""] : [],
    gpuSeconds: held * age,
    coreSeconds: held * age * 8,
    cost: null,
    listCost: null,
    live: i % 13 !== 5,
  };
}

const RESOURCES = [
  ["cpu", "cores", 96],
  ["memory", "bytes", 768 * 1024 ** 3],
  ["nvidia.com/gpu", "count", 12],
  ["aliyun.com/gpu-mem", "GiB", 40],
  ["aliyun.com/gpu", "count", 4],
] as const;

function makeQuota(teams: readonly string[]): QuotaRow[] {
  return RESOURCES.flatMap(([resource, unit, scale]) => {
    const rows = teams.map((team, i) => leaf(team, i, resource, unit, scale));
    const sum = (of: (row: QuotaRow) => number) => rows.reduce((a, row) => a + of(row), 0);
    const root: QuotaRow = { ...rows[0]!, name: "root", path: "root", parent: "", depth: 0, isLeaf: false, namespaces: [...teams], max: sum((r) => r.min) * 1.3, min: sum((r) => r.min) * 1.3, used: sum((r) => r.used), requested: sum((r) => r.requested), borrowed: 0, byNamespace: [], byUser: [] };
    return [root, ...rows];
  });
}

function leaf(team: string, i: number, resource: string, unit: string, scale: number): QuotaRow {
  const used = Math.round(scale * [0.7, 1.35, 0.2][i % 3]!);
  const requested = used + (i % 3 === 2 ? Math.round(scale * 0.4) : 0);
  const spaces = i === 1 ? [team, `${team}-batch`] : [team];
  return { name: team, path: `root.${team}`, parent: "root", depth: 1, isLeaf: true, namespaces: spaces, resource, unit, max: i === 2 ? null : scale * 2, min: scale, minWritten: scale, overMax: 0, used, requested, borrowed: Math.max(0, used - scale), lent: 0, lost: 0, claimed: 0, byUser: [{ user: `${team}-lead`, used }], waitingPods: i % 3 === 2 ? 3 : 0, waitingJobs: i % 3 === 2 ? 1 : 0, byNamespace: spaces.map((namespace, n) => ({ namespace, used: n ? used * 0.3 : used * (spaces.length > 1 ? 0.7 : 1) })) };
}

const freeOn = (n: NodeRow): number => (n.status === "Ready" && n.schedulable ? Math.max(0, n.gpusTotal - n.gpusAllocated - n.gpusUnhealthy) : 0);

function makePools(nodes: readonly NodeRow[]): World["overview"]["pools"] {
  return MODELS.map((m, at) => {
    const members = nodes.filter((n) => n.gpuModel === m.name);
    const sum = (of: (n: NodeRow) => number) => Math.round(members.reduce((a, n) => a + of(n), 0) * 100) / 100;
    return { model: m.name, mode: at === 2 ? "share" : "exclusive", nodes: members.length, gpus: sum((n) => n.gpusTotal), gpusAllocated: sum((n) => n.gpusAllocated), gpusFree: sum(freeOn), gpusFreeUnnamed: 0, largestFreeMiB: at === 2 ? 11264 : null, gpusUnhealthy: sum((n) => n.gpusUnhealthy) };
  }).filter((p) => p.gpus > 0);
}

function makeOverview(nodes: readonly NodeRow[], map: readonly { name: string; model: number; gpus: readonly Card[] }[], jobs: readonly JobRow[], teams: readonly string[], quota: readonly QuotaRow[], name: WorldName): World["overview"] {
  const withGpus = nodes.filter((n) => n.gpusTotal > 0);
  const sum = (of: (n: NodeRow) => number | null) => withGpus.reduce((a, n) => a + (of(n) ?? 0), 0);
  const cells = map.flatMap((n) => n.gpus);
  const idle = cells.filter((g) => (g[5] ?? 0) > 3600).length;
  const total = sum((n) => n.gpusTotal);
  const allocated = Math.round(sum((n) => n.gpusAllocated) * 10) / 10;
  const unhealthy = sum((n) => n.gpusUnhealthy);
  const reporting = cells.filter((g) => g[2] !== null);
  const held = teams.map((namespace, at) => ({ namespace, gpus: cells.reduce((a, g) => a + g[6].reduce((b, s) => b + (s[0] === at ? s[1] : 0), 0), 0), gpuMemoryMiB: 81920 * (at + 3), jobs: jobs.filter((j) => j.namespace === namespace && j.status === "Running").length }));
  const state = (word: string) => jobs.filter((j) => j.status === word).length;
  return {
    sentence: total === 0 ? { code: "cluster-none", values: {}, text: "This cluster has no GPUs." } : { code: "cluster-idle-unhealthy", values: { allocated, total, idle, unhealthy }, text: "…" },
    gpuNodes: { total: withGpus.length, allocated: withGpus.filter((n) => n.gpusAllocated > 0).length, unhealthy: withGpus.filter((n) => n.status !== "Ready").length, faulty: withGpus.filter((n) => n.gpusUnhealthy > 0).length },
    gpus: { total, allocated, unhealthy },
    gpuMemory: { totalMiB: total ? sum((n) => n.gpuMemoryTotalMiB) : null, allocatedMiB: total ? sum((n) => n.gpuMemoryAllocatedMiB) : null, usedMiB: total ? sum((n) => n.gpuMemoryUsedMiB) : null, usedOfMiB: total ? sum((n) => n.gpuMemoryUsedOfMiB) : null },
    gpuUtilPercent: reporting.length ? reporting.reduce((a, g) => a + (g[2] ?? 0), 0) / reporting.length : null,
    gpusReporting: reporting.length,
    jobs: { running: state("Running"), pending: state("Pending"), succeeded: state("Succeeded"), failed: state("Failed") },
    idleGpus: idle,
    pools: name === "empty" ? [] : makePools(nodes),
    topConsumers: held.filter((h) => h.gpus > 0).sort((a, b) => b.gpus - a.gpus),
    starvedLeaves: quota.filter((q) => q.isLeaf && q.waitingPods > 0 && q.used < q.min && q.resource.endsWith("/gpu")).map((q) => ({ path: q.path, resource: q.resource, unit: q.unit, min: q.min, used: q.used, waitingPods: q.waitingPods })),
    attention: [],
    faultyGpus: map.flatMap((n) => n.gpus.filter((g) => g[1] === 3).map((g) => ({ node: n.name, index: g[0], uuid: "GPU-00", model: "", reason: "XID 79: GPU has fallen off the bus" }))).slice(0, 20),
    recentWarnings: name === "empty" ? [] : [
      { at: ago(240), namespace: "team-speech", object: "Pod/whisper-ft-worker-0", reason: "FailedScheduling", message: "0/8 nodes are available: 6 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint.", count: 14, objects: 3, job: "pytorchjob/whisper-ft", node: "" },
      { at: ago(1900), namespace: "team-vision", object: "Pod/resnet50-worker-1", reason: "BackOff", message: "Back-off restarting failed container trainer", count: 3, objects: 1, job: "", node: "" },
    ],
  };
}
