// Generated from docs/openapi.json by `npm run types`. Do not edit.

/** `total` lines exist, `shown` of them (the top by mean) are here. `source`: `prometheus`, `built-in` or `none`. `step` in seconds. `query` is the PromQL that answered, or the words of the built-in series. */
export interface Chart {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly title: string;
  readonly unit: string;
  readonly series: readonly ChartLine[];
  readonly total: number;
  readonly shown: number;
  readonly source: string;
  readonly query: string;
  readonly step: number;
}

export interface ChartLine {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly (readonly [number, number | null])[];
}

/** The cluster's time. Ages count from here, because simulated time runs at its own `speed`. */
export interface ClockFace {
  readonly now: string;
  readonly speed: number;
}

/** `version` is Fairlead's snapshot version, a number that grows with every change. */
export interface ClusterName {
  readonly name: string;
  readonly world: "kubernetes" | "simulated";
  readonly version: string;
}

export interface ConditionRow {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly at: string | null;
}

export interface Consumer {
  readonly namespace: string;
  readonly gpus: number;
  readonly gpuMemoryMiB: number | null;
  readonly jobs: number;
}

/** Every answer from 400 up. `requestId` is also in the header `X-Request-Id` and in the server's log. */
export interface ErrorAnswer {
  readonly ok: boolean;
  readonly status: number;
  readonly code: string;
  readonly error: string;
  readonly hint: string;
  readonly fields: readonly FieldFault[];
  readonly requestId: string;
}

export interface FaultyGpu {
  readonly node: string;
  readonly index: number;
  readonly uuid: string;
  readonly model: string;
  readonly reason: string;
}

export interface Features {
  readonly prometheus: boolean;
}

export interface FieldFault {
  readonly path: string;
  readonly rule: string;
  readonly error: string;
}

export interface GpuCounts {
  readonly total: number;
  readonly allocated: number;
  readonly unhealthy: number;
}

/** `teams` are namespaces. State numbers: 0 free, 1 allocated, 2 shared, 3 unhealthy, 4 draining, 5 unknown. */
export interface GpuMap {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly teams: readonly string[];
  readonly models: readonly string[];
  readonly nodes: readonly MapNode[];
}

export interface GpuMemory {
  readonly totalMiB: number | null;
  readonly allocatedMiB: number | null;
  readonly usedMiB: number | null;
}

/** `unhealthy`: Ready is not True. `faulty`: at least one broken card, whatever the node says. */
export interface GpuNodeCounts {
  readonly total: number;
  readonly allocated: number;
  readonly unhealthy: number;
  readonly faulty: number;
}

/** A pod on one GPU. `job` is `type/name` or empty; `usedMiB` is null when nobody reports it per pod. */
export interface GpuPod {
  readonly namespace: string;
  readonly name: string;
  readonly job: string;
  readonly allocatedMiB: number | null;
  readonly usedMiB: number | null;
  readonly utilPercent: number | null;
}

/** `flags`: `used-without-allocation`, `idle` (allocated and below 1 % for an hour). */
export interface GpuRow {
  readonly index: number;
  readonly uuid: string;
  readonly model: string;
  readonly mode: string;
  readonly memoryTotalMiB: number | null;
  readonly memoryAllocatedMiB: number | null;
  readonly memoryUsedMiB: number | null;
  readonly utilPercent: number | null;
  readonly temperatureC: number | null;
  readonly powerW: number | null;
  readonly health: string;
  readonly reason: string;
  readonly lastXid: LastXid | null;
  readonly idleSeconds: number | null;
  readonly pods: readonly GpuPod[];
  readonly migInstances: readonly string[];
  readonly flags: readonly string[];
}

/** One pod of the job. `ageSeconds` is the instance's own: first start to last finish, or waiting since it was made. */
export interface Instance {
  readonly name: string;
  readonly role: string;
  readonly status: string;
  readonly node: string;
  readonly ip: string;
  readonly gpus: number;
  readonly gpuIndexes: readonly number[];
  readonly gpuUuids: readonly string[];
  readonly gpuMemoryAllocatedMiB: number | null;
  readonly gpuMemoryUsedMiB: number | null;
  readonly gpuUtilPercent: number | null;
  readonly restarts: number;
  readonly ageSeconds: number;
  readonly isChief: boolean;
}

export interface InstanceCounts {
  readonly desired: number;
  readonly running: number;
  readonly pending: number;
  readonly succeeded: number;
  readonly failed: number;
}

/** Suspended, queuing and submitted jobs are pending; restarting and scaling ones are running. */
export interface JobCounts {
  readonly running: number;
  readonly pending: number;
  readonly succeeded: number;
  readonly failed: number;
}

export interface JobDetail {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly job: JobRow;
  readonly instances: readonly Instance[];
  readonly events: readonly JobEvent[];
}

export interface JobEvent {
  readonly at: string | null;
  readonly type: string;
  readonly reason: string;
  readonly object: string;
  readonly message: string;
  readonly count: number;
}

export interface JobList {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly total: number;
  readonly page: number;
  readonly size: number;
  readonly sentence: Sentence;
  readonly facets: Readonly<Record<string, readonly string[]>>;
  readonly items: readonly JobRow[];
}

/** `live`: the object still exists. `gpuSeconds`, `coreSeconds`, `cost` and `listCost` need the ledger: null without it. */
export interface JobRow {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  readonly status: string;
  readonly state: string;
  readonly waiting: Waiting | null;
  readonly durationSeconds: number;
  readonly gpusRequested: number;
  readonly gpusAllocated: number;
  readonly gpuMemoryRequestedMiB: number | null;
  readonly gpuMemoryAllocatedMiB: number | null;
  readonly gpuMemoryUsedMiB: number | null;
  readonly gpuUtilPercent: number | null;
  readonly uid: string;
  readonly apiVersion: string;
  readonly user: string;
  readonly quotaPath: string;
  readonly createdAt: string | null;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly instances: InstanceCounts;
  readonly nodes: readonly string[];
  readonly gpuSeconds: number | null;
  readonly coreSeconds: number | null;
  readonly cost: string | null;
  readonly listCost: string | null;
  readonly live: boolean;
}

export interface LastXid {
  readonly code: number;
  readonly at: string | null;
}

/** `model` is an index into `models`. */
export interface MapNode {
  readonly name: string;
  readonly model: number;
  readonly mode: string;
  readonly status: string;
  readonly gpus: readonly (readonly [number, number, number | null, number | null, number | null, number | null, readonly (readonly [number, number])[]])[];
}

/** `csrf` goes back in `X-Fairlead-Csrf` with every write. `version` is the server's program version. */
export interface Me {
  readonly user: Person;
  readonly csrf: string;
  readonly cluster: ClusterName;
  readonly clock: ClockFace;
  readonly features: Features;
  readonly version: string;
}

export interface NamespaceUse {
  readonly namespace: string;
  readonly used: number;
}

export interface NodeDetail {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly node: NodeRow;
  readonly conditions: readonly ConditionRow[];
  readonly taints: readonly TaintRow[];
  readonly labels: Readonly<Record<string, string>>;
  readonly kubeletVersion: string;
  readonly runtimeVersion: string;
  readonly osImage: string;
  readonly gpus: readonly GpuRow[];
  readonly pods: readonly NodePod[];
}

export interface NodeList {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly total: number;
  readonly page: number;
  readonly size: number;
  readonly sentence: Sentence;
  readonly facets: Readonly<Record<string, readonly string[]>>;
  readonly items: readonly NodeRow[];
}

/** A pod that holds GPUs of this node. */
export interface NodePod {
  readonly namespace: string;
  readonly name: string;
  readonly job: string;
  readonly phase: string;
  readonly gpus: number;
  readonly gpuMemoryAllocatedMiB: number | null;
  readonly createdAt: string | null;
}

/** `gpusAllocated` of a shared node is the sum of fractions; `status` Ready, NotReady or Unknown; `role` comma list or `<none>`. */
export interface NodeRow {
  readonly name: string;
  readonly ip: string;
  readonly role: string;
  readonly status: string;
  readonly schedulable: boolean;
  readonly gpuMode: string;
  readonly gpusTotal: number;
  readonly gpuMemoryTotalMiB: number | null;
  readonly gpusAllocated: number;
  readonly gpuMemoryAllocatedMiB: number | null;
  readonly gpuMemoryUsedMiB: number | null;
  readonly gpuUtilPercent: number | null;
  readonly gpuModel: string;
  readonly isolation: string;
  readonly gpusUnhealthy: number;
  readonly gpusReporting: number;
  readonly driverVersion: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly createdAt: string | null;
  readonly cpuTotalCores: number;
  readonly memoryTotalMiB: number;
}

export interface Overview {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly sentence: Sentence;
  readonly gpuNodes: GpuNodeCounts;
  readonly gpus: GpuCounts;
  readonly gpuMemory: GpuMemory;
  readonly gpuUtilPercent: number | null;
  readonly gpusReporting: number;
  readonly jobs: JobCounts;
  readonly idleGpus: number;
  readonly pools: readonly Pool[];
  readonly topConsumers: readonly Consumer[];
  readonly starvedLeaves: readonly StarvedLeaf[];
  readonly faultyGpus: readonly FaultyGpu[];
  readonly recentWarnings: readonly RecentWarning[];
}

export interface Person {
  readonly name: string;
  readonly role: string;
}

/** All GPUs of one model and mode: what a person who wants GPUs looks at. */
export interface Pool {
  readonly model: string;
  readonly mode: string;
  readonly nodes: number;
  readonly gpus: number;
  readonly gpusAllocated: number;
}

/** `borrowed` is used above min; `lent` is min that others use. `requested` counts waiting pods too. */
export interface QuotaRow {
  readonly name: string;
  readonly path: string;
  readonly parent: string;
  readonly depth: number;
  readonly isLeaf: boolean;
  readonly namespaces: readonly string[];
  readonly resource: string;
  readonly unit: string;
  readonly max: number | null;
  readonly min: number;
  readonly used: number;
  readonly requested: number;
  readonly borrowed: number;
  readonly lent: number;
  readonly waitingPods: number;
  readonly waitingJobs: number;
  readonly byNamespace: readonly NamespaceUse[];
}

/** `resources`: the managed resources in the order of the tables. */
export interface QuotaUsage {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly total: number;
  readonly page: number;
  readonly size: number;
  readonly sentence: Sentence;
  readonly facets: Readonly<Record<string, readonly string[]>>;
  readonly items: readonly QuotaRow[];
  readonly resources: readonly string[];
}

export interface RecentWarning {
  readonly at: string | null;
  readonly namespace: string;
  readonly object: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
}

/** One sentence of state: `code` and `values` for the catalogues of the client, `text` in English. */
export interface Sentence {
  readonly code: string;
  readonly values: Readonly<Record<string, string | number | number | null>>;
  readonly text: string;
}

/** A quota leaf below its guaranteed minimum while pods of it wait. `min`, `used` in `unit`. */
export interface StarvedLeaf {
  readonly path: string;
  readonly resource: string;
  readonly unit: string;
  readonly min: number;
  readonly used: number;
  readonly waitingPods: number;
}

export interface TaintRow {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

export interface Waiting {
  readonly reason: string;
  readonly message: string;
}

/** What is missing in this answer, where it would come from, and what to do. `message` and `hint` are English. */
export interface Warning {
  readonly code: string;
  readonly source: string;
  readonly message: string;
  readonly hint: string;
  readonly values: Readonly<Record<string, string | number | number | null>>;
}
