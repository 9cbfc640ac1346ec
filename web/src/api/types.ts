// What does the server say? The answers the page reads; times are RFC 3339 text, units stand in the names, unknown is `null`.

export type Unknown<T> = T | null;

export interface Warning {
  readonly code: string;
  readonly source?: string | null;
  readonly message: string;
  readonly hint?: string | null;
  readonly values?: Readonly<Record<string, string | number | null>>;
}

export interface Sentence {
  readonly code: string;
  readonly values: Readonly<Record<string, string | number | null>>;
  readonly text: string;
}

export interface Answer {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly sentence?: Sentence;
}

export interface ListAnswer<Row> extends Answer {
  readonly items: readonly Row[];
  readonly total: number;
  readonly page: number;
  readonly size: number;
  readonly facets?: Readonly<Record<string, readonly string[]>>;
}

export interface Me {
  readonly user: { readonly name: string; readonly role: "admin" | "researcher" };
  readonly csrf: string;
  readonly cluster: { readonly name: string; readonly world: "simulated" | "kubernetes"; readonly version: Unknown<string> };
  readonly clock: { readonly now: string; readonly speed: number };
  readonly features: { readonly prometheus: boolean };
  readonly version: string;
}

export interface Overview extends Answer {
  readonly gpuNodes: { readonly total: number; readonly allocated: number; readonly unhealthy: number; readonly faulty: number };
  readonly gpus: { readonly total: number; readonly allocated: number; readonly unhealthy: number };
  readonly gpuMemory: { readonly totalMiB: Unknown<number>; readonly allocatedMiB: Unknown<number>; readonly usedMiB: Unknown<number> };
  readonly gpuUtilPercent: Unknown<number>;
  readonly gpusReporting: number;
  readonly jobs: Readonly<Record<JobState, number>>;
  readonly idleGpus: number;
  readonly pools: readonly Pool[];
  readonly topConsumers: readonly Consumer[];
  readonly starvedLeaves: readonly StarvedLeaf[];
  readonly faultyGpus: readonly FaultyGpu[];
  readonly recentWarnings: readonly RecentWarning[];
}

export type JobState = "running" | "pending" | "succeeded" | "failed";

export interface Pool {
  readonly model: string;
  readonly mode: string;
  readonly nodes: number;
  readonly gpus: number;
  readonly gpusAllocated: number;
}

export interface Consumer {
  readonly namespace: string;
  readonly gpus: number;
  readonly gpuMemoryMiB: Unknown<number>;
  readonly jobs: number;
}

export interface StarvedLeaf {
  readonly path: string;
  readonly resource: string;
  readonly unit: string;
  readonly min: number;
  readonly used: number;
  readonly waitingPods: number;
}

export interface FaultyGpu {
  readonly node: string;
  readonly index: number;
  readonly uuid: string;
  readonly model: string;
  readonly reason: string;
}

export interface RecentWarning {
  readonly at: Unknown<string>;
  readonly namespace: string;
  readonly object: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
}

/** `[index, state, util %, memory used %, °C, idle seconds, slices]`; states in `gpumap/cells.ts`. */
export type MapGpu = readonly [
  index: number,
  state: number,
  util: Unknown<number>,
  memory: Unknown<number>,
  celsius: Unknown<number>,
  idle: Unknown<number>,
  slices: readonly (readonly [team: number, share: number])[],
];

export interface MapNode {
  readonly name: string;
  readonly model: number;
  readonly mode: string;
  readonly status: string;
  readonly gpus: readonly MapGpu[];
}

export interface GpuMapAnswer extends Answer {
  readonly teams: readonly string[];
  readonly models: readonly string[];
  readonly nodes: readonly MapNode[];
}

export interface NodeRow {
  readonly name: string;
  readonly ip: string;
  readonly role: string;
  readonly status: string;
  readonly schedulable: boolean;
  readonly gpuMode: string;
  readonly gpuModel: string;
  readonly isolation: string;
  readonly gpusTotal: number;
  readonly gpusAllocated: number;
  readonly gpusUnhealthy: number;
  readonly gpusReporting: number;
  readonly gpuMemoryTotalMiB: Unknown<number>;
  readonly gpuMemoryAllocatedMiB: Unknown<number>;
  readonly gpuMemoryUsedMiB: Unknown<number>;
  readonly gpuUtilPercent: Unknown<number>;
  readonly driverVersion: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly createdAt: Unknown<string>;
  readonly cpuTotalCores: number;
  readonly memoryTotalMiB: number;
}

export interface GpuPod {
  readonly namespace: string;
  readonly name: string;
  /** `type/name`, or empty. */
  readonly job: string;
  readonly allocatedMiB: Unknown<number>;
  readonly usedMiB: Unknown<number>;
  readonly utilPercent: Unknown<number>;
}

export interface GpuRow {
  readonly index: number;
  readonly uuid: string;
  readonly model: string;
  readonly mode: string;
  readonly memoryTotalMiB: Unknown<number>;
  readonly memoryAllocatedMiB: Unknown<number>;
  readonly memoryUsedMiB: Unknown<number>;
  readonly utilPercent: Unknown<number>;
  readonly temperatureC: Unknown<number>;
  readonly powerW: Unknown<number>;
  readonly health: string;
  readonly reason: string;
  readonly lastXid: Unknown<{ readonly code: number; readonly at: Unknown<string> }>;
  readonly idleSeconds: Unknown<number>;
  readonly pods: readonly GpuPod[];
  readonly migInstances: readonly string[];
  readonly flags: readonly string[];
}

export interface NodePod {
  readonly namespace: string;
  readonly name: string;
  readonly job: string;
  readonly phase: string;
  readonly gpus: number;
  readonly gpuMemoryAllocatedMiB: Unknown<number>;
  readonly createdAt: Unknown<string>;
}

export interface NodeCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly at: Unknown<string>;
}

export interface NodeDetail extends Answer {
  readonly node: NodeRow;
  readonly conditions: readonly NodeCondition[];
  readonly taints: readonly { readonly key: string; readonly value: string; readonly effect: string }[];
  readonly labels: Readonly<Record<string, string>>;
  readonly kubeletVersion: string;
  readonly runtimeVersion: string;
  readonly osImage: string;
  readonly gpus: readonly GpuRow[];
  readonly pods: readonly NodePod[];
}

export interface JobRow {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  /** The board's word: Pending, Running, Succeeded, Failed; `state` is the exact one. */
  readonly status: string;
  readonly state: string;
  readonly waiting: Unknown<{ readonly reason: string; readonly message: string }>;
  readonly durationSeconds: number;
  readonly gpusRequested: number;
  readonly gpusAllocated: number;
  readonly gpuMemoryRequestedMiB: Unknown<number>;
  readonly gpuMemoryAllocatedMiB: Unknown<number>;
  readonly gpuMemoryUsedMiB: Unknown<number>;
  readonly gpuUtilPercent: Unknown<number>;
  readonly uid: string;
  readonly apiVersion: string;
  readonly user: string;
  readonly quotaPath: string;
  readonly createdAt: Unknown<string>;
  readonly startedAt: Unknown<string>;
  readonly finishedAt: Unknown<string>;
  readonly instances: { readonly desired: number; readonly running: number; readonly pending: number; readonly succeeded: number; readonly failed: number };
  readonly nodes: readonly string[];
  readonly gpuSeconds: Unknown<number>;
  readonly coreSeconds: Unknown<number>;
  readonly live: boolean;
}

export interface Instance {
  readonly name: string;
  readonly role: string;
  readonly status: string;
  readonly node: string;
  readonly ip: string;
  readonly gpus: number;
  readonly gpuIndexes: readonly number[];
  readonly gpuUuids: readonly string[];
  readonly gpuMemoryAllocatedMiB: Unknown<number>;
  readonly gpuMemoryUsedMiB: Unknown<number>;
  readonly gpuUtilPercent: Unknown<number>;
  readonly restarts: number;
  readonly ageSeconds: number;
  readonly isChief: boolean;
}

export interface JobEvent {
  readonly at: Unknown<string>;
  readonly type: string;
  readonly reason: string;
  readonly object: string;
  readonly message: string;
  readonly count: number;
}

export interface JobDetail extends Answer {
  readonly job: JobRow;
  readonly instances: readonly Instance[];
  readonly events: readonly JobEvent[];
}

export interface QuotaRow {
  readonly name: string;
  readonly path: string;
  readonly parent: string;
  readonly depth: number;
  readonly isLeaf: boolean;
  readonly namespaces: readonly string[];
  readonly resource: string;
  /** What the numbers count: `cores`, `bytes`, `GiB`, `count`. */
  readonly unit: string;
  readonly max: Unknown<number>;
  readonly min: number;
  readonly used: number;
  readonly requested: number;
  readonly borrowed: number;
  readonly lent: number;
  readonly waitingPods: number;
  readonly waitingJobs: number;
  readonly byNamespace: readonly { readonly namespace: string; readonly used: number }[];
}

export interface QuotaAnswer extends ListAnswer<QuotaRow> {
  readonly resources: readonly string[];
}

/** `source`: `prometheus`, `built-in` or `none`; `query` is what was really asked. */
export interface ChartAnswer extends Answer {
  readonly unit: string;
  readonly series: readonly ChartSeries[];
  readonly total: number;
  readonly shown: number;
  readonly source: string;
  readonly query: string;
  readonly step: number;
}

export interface ChartSeries {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly (readonly [number, number | null])[];
}
