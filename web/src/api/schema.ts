// Generated from the server's types by tools/docs_typescript.py; do not edit.

/** One check before a write. `state`: ok, warn, fail, or unknown (it may not be read). `mend`: what to do, "" = nothing. */
export interface AccelerationCheck {
  check: string
  state: string
  sentence: string
  mend: string
}

/** How a claim is accelerated. What is "" or 0 gets the default. `quota`: of each worker, such as `20Gi`; `folder`: of the claim; `medium`: MEM or SSD. */
export interface AccelerationOrder {
  name?: string
  folder?: string
  workers?: number
  medium?: string
  quota?: string
}

/** What `dryRun=true` answers: nothing was written. `checks`: all, whatever the first finds. `chosen`: null if a field cannot be read. `line`: the equal command. `manifests`: the objects as YAML. */
export interface AccelerationPreview {
  valid: boolean
  fields: Array<FieldFault>
  effects: Array<Effect>
  checks: Array<AccelerationCheck>
  chosen: ChosenAcceleration | null
  line: string
  manifests: string
}

/** `user`: id of a User of a simulated cluster, "" for oneself. */
export interface ActAs {
  user: string
}

/** `level`: broken, waiting or wasted. `objects`: those in trouble the longest; `more` are not named. `count` may be a fraction: parts of GPUs that are idle. `since`: the first of them, null = unknown. `command`: what to ask next about the first of them. `why`: of things that wait, why the first does, in our words where we have some, else in the source's. */
export interface AttentionLine {
  kind: string
  level: string
  count: number
  sentence: Sentence
  since: string | null
  objects: Array<AttentionObject>
  more: number
  command: string
  why: Sentence | null
}

/** One thing in trouble. `kind`: node, gpu, pod or leaf; the name of a gpu is its node's. `job`: of a pod that belongs to one, as `type/name`. `index`: of a gpu. */
export interface AttentionObject {
  kind: string
  namespace: string
  name: string
  node: string
  job: string
  index: number | null
}

/** `result`: `ok`, `refused`, `failed`, or `begun`: how it ended is not known. `code`: of a refusal or failure, as in the errors of this API. `summary`: names of fields, no secret values. */
export interface AuditEntry {
  id: number
  at: string
  actor: string
  role: string
  sourceIp: string
  action: string
  target: AuditedObject
  requestId: string
  result: string
  code: string
  summary: string
}

/** `total`: rows that match. `before`: what the next page is asked with, 0 = there is none. */
export interface AuditPage {
  generatedAt: string
  total: number
  size: number
  before: number
  items: Array<AuditEntry>
}

/** `namespace`: "" = an object of the whole cluster. */
export interface AuditedObject {
  kind: string
  namespace: string
  name: string
}

/** An operation that was accepted (202). The header `Location` has its address. */
export interface Begun {
  operation: string
}

export interface BorrowerRow {
  leaf: string
  resource: string
  unit: string
  over: number
}

/** `min` and `max` are quantities; null stays as it is. "" is no min, and no limit. */
export interface BoundsChange {
  node: string
  resource: string
  min: string | null
  max: string | null
}

/** `old`, `new`: JSON; "" = the field is absent. */
export interface ChangedField {
  path: string
  old: string
  new: string
}

/** `do`: `create`, `change` (with its `fields`), `delete` or `keep`. */
export interface ChangedObject {
  do: string
  kind: string
  namespace: string
  name: string
  fields: Array<ChangedField>
}

/** `total` lines exist, `shown` of them (the top by mean) are here. `source`: `prometheus`, `built-in` or `none`. `step` in seconds. `query` is the PromQL that answered, or the words of the built-in series. */
export interface Chart {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  title: string
  unit: string
  series: Array<ChartLine>
  total: number
  shown: number
  source: string
  query: string
  step: number
}

export interface ChartLine {
  labels: Record<string, string>
  points: Array<[number, number | null]>
}

/** An order with the defaults that apply. `node`: where master and worker run, "" = on any. */
export interface ChosenAcceleration {
  name: string
  folder: string
  workers: number
  medium: string
  quota: string
  node: string
}

/** The cluster's time. Ages count from here, because simulated time runs at its own `speed`. `speed` in seconds per second, unless it `isPaused` or goes from `since` to `until` as fast as it can. */
export interface ClockFace {
  now: string
  speed: number
  isPaused: boolean
  since: string | null
  until: string | null
}

/** The clock after an order, and for a step what happened (the first 200 writes of `happenedCount`). */
export interface ClockMoved {
  clock: ClockFace
  happened: Array<ClockWrite>
  happenedCount: number
}

/** `advance` takes `seconds`, `until` an RFC 3339 `until`, `speed` a `speed`; the others take nothing. */
export interface ClockOrder {
  action: 'advance' | 'pause' | 'resume' | 'speed' | 'step' | 'until'
  seconds?: number | null
  until?: string | null
  speed?: number | null
}

/** One write that a step came to. `verb` is `added`, `modified` or `deleted`. */
export interface ClockWrite {
  verb: string
  kind: string
  namespace: string
  name: string
}

/** `version` is Fairlead's snapshot version, a number that grows with every change. */
export interface ClusterName {
  name: string
  world: 'kubernetes' | 'simulated'
  version: string
}

/** One check before a write. `state`: ok, warn, fail, or unknown (it may not be read). `mend`: what to do, "" = nothing. */
export interface ComponentCheck {
  check: string
  state: string
  sentence: string
  mend: string
}

/** `values`: YAML of the last deployment, "" = none. `objects`: what the inventory lists, or the workloads of a part or of a Helm release. `history`: its operations, the newest first. `links`: addresses of its pages (Grafana), as its Ingresses name them. */
export interface ComponentDetail {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  row: ComponentListRow
  values: string
  objects: Array<ComponentObject>
  history: Array<ListedOperation>
  links: Array<string>
}

/** A value of a chart that administrators change most. `type`: `text`, `number`, `boolean`, `list` or `mapping` (both in YAML). */
export interface ComponentField {
  name: string
  type: string
  title: string
  titleZh: string
}

export interface ComponentList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<ComponentListRow>
}

/** One component of the catalogue (docs/spec/components.md#states). `state`: null = it could not be read, `message` has the reason. `source`: what a deployment needs: `chart`, `manifests`, `none` (a stand-in of a simulated cluster), `part` (of the installation), `command` (a part where there is no installation that Fairlead may change: a command writes it) or "" (Fairlead never writes it). `operation`: the one that runs, "" = none. `fields`: values of its chart. `chart`: its address where the console has a folder of charts, "" = none. */
export interface ComponentListRow {
  id: string
  group: string
  title: string
  titleZh: string
  state: string | null
  version: string
  available: string
  canUpgrade: boolean
  managedBy: string
  namespace: string
  release: string
  message: string
  source: string
  chart: string
  isRequired: boolean
  operation: string
  fields: Array<ComponentField>
}

export interface ComponentObject {
  kind: string
  namespace: string
  name: string
}

/** What is planned. `do`: `deploy`, `upgrade` or `remove`. `chart`: `oci://…` or `https://…`, and `version` of it; or `manifests`: YAML. `values`: of the chart, or of the installation whose part it is; YAML without secrets. `settings`: texts for `fields` of the chart, by name, stronger than `values`. `namespace`: "" = the usual one. `deleteDefinitions`: with `remove`, its CRDs are deleted, too. */
export interface ComponentOrder {
  component: string
  do?: string
  chart?: string
  version?: string
  manifests?: string
  values?: string
  namespace?: string
  deleteDefinitions?: boolean
  settings?: Record<string, string>
}

/** A plan. `valid`: no check fails, and `fields` is empty; only then there is a `planId`, which a preview never has. `checks`: all. `same`: how many objects do not change. `steps`: titles. `line`: the equal command. `validUntil`: after this time the plan must be made again. */
export interface ComponentPlanned {
  valid: boolean
  fields: Array<FieldFault>
  effects: Array<Effect>
  checks: Array<ComponentCheck>
  changes: Array<ChangedObject>
  same: number
  steps: Array<string>
  line: string
  planId: string
  validUntil: string | null
}

/** Components that are deployed by one click; each is as if it were asked for alone. */
export interface ComponentsOrder {
  components: Array<ComponentOrder>
}

/** One plan of several, in the order in which they are deployed. The `path` of a field begins with the id of its component. See `ComponentPlanned`. */
export interface ComponentsPlanned {
  valid: boolean
  fields: Array<FieldFault>
  effects: Array<Effect>
  items: Array<PlannedComponent>
  line: string
  planId: string
  validUntil: string | null
}

export interface ConditionRow {
  type: string
  status: string
  reason: string
  message: string
  at: string | null
}

/** What the user may do in this console. `where`: `everywhere`, or `own`: in the own namespaces. `verbs`: some of `get`, `create`, `update`, `delete`. */
export interface ConsoleRight {
  resource: string
  where: string
  verbs: Array<string>
}

export interface Consumer {
  namespace: string
  gpus: number
  gpuMemoryMiB: number | null
  jobs: number
}

export interface CredentialList {
  generatedAt: string
  items: Array<CredentialRow>
}

/** `lifetimeSeconds`: how long the token shall work; the answer has the time that the API server granted. */
export interface CredentialOrder {
  lifetimeSeconds?: number
  note?: string
}

/** A token that was issued and not revoked; the token itself is kept nowhere. `state`: `valid`, `expired`, or `unknown` for one that its user renews. `issuedBy`: the user who asked for it. */
export interface CredentialRow {
  id: string
  user: string
  state: string
  issuedAt: string
  expiresAt: string
  issuedBy: string
  note: string
}

/** Why the data set may not end now; empty = it may. */
export interface DataSetBlockers {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  blockers: Array<string>
}

/** As Fluid reports it. */
export interface DataSetCache {
  cachedBytes: number | null
  capacityBytes: number | null
  hitPercent: number | null
  localHitPercent: number | null
  remoteHitPercent: number | null
}

export interface DataSetCondition {
  type: string
  status: string
  reason: string
  message: string
  at: string | null
}

/** `row`: the data set, or the claim where there is no data set of the name. `cache`: null of a claim. `users`: what mounts it. `blockers`: why it may not end, empty = it may. `unread`: what may not be read. */
export interface DataSetDetail {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  row: DataSetRow
  mounts: Array<DataSetMount>
  runtimes: Array<DataSetRuntime>
  cache: DataSetCache | null
  conditions: Array<DataSetCondition>
  finalizers: Array<string>
  preheats: Array<DataSetPreheat>
  events: Array<DataSetEvent>
  users: Array<DataSetUser>
  blockers: Array<string>
  unread: Array<string>
}

/** An Event of type Warning. */
export interface DataSetEvent {
  reason: string
  message: string
  object: string
  at: string | null
}

export interface DataSetList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<DataSetRow>
}

/** `point`: `pvc://CLAIM/PATH`, `s3://…`, … `options`: `NAME=VALUE`, where a value that may be secret is hidden. `secrets`: `OPTION: SECRET/KEY`, never a value. */
export interface DataSetMount {
  point: string
  path: string
  readOnly: boolean
  options: Array<string>
  secrets: Array<string>
}

/** A data set over another source. `mount`: its URI, such as `oss://bucket/folder`; a claim is `pvc://CLAIM/FOLDER`. `endpoint`: of the object store. `secret`: the Secret with both keys of the object store, "" = none; `idKey`, `secretKey`: their names in it, never the keys themselves. What else is "" or 0 gets the default, as in `AccelerationOrder`. */
export interface DataSetOrder {
  namespace: string
  name: string
  mount: string
  endpoint?: string
  secret?: string
  idKey?: string
  secretKey?: string
  workers?: number
  medium?: string
  quota?: string
}

/** The master, the workers or the fuse of a runtime. */
export interface DataSetPart {
  name: string
  phase: string
  reason: string
}

/** A pod that mounts the claim and has not ended. `node`: "" while it waits. */
export interface DataSetPod {
  name: string
  node: string
}

/** A DataLoad. `duration`: Fluid's own text. */
export interface DataSetPreheat {
  name: string
  phase: string
  paths: Array<string>
  schedule: string
  duration: string
  message: string
  createdAt: string | null
}

/** One data set of Fluid, or one claim (docs/spec/datasets.md#data-list). `kind`: Dataset or PersistentVolumeClaim. `source`: what it mounts, or the volume of a claim. `accelerated`: a data set, or a claim that `acceleratedBy` cache. `status`: Ready or NotReady; `phase`: the object's own word. `operation`: the id of the operation at work on it, "" = none; only administrators see it. `users`: how many jobs and single pods mount it, null while pods are not known; `usedBy`: the first five of them by name. */
export interface DataSetRow {
  namespace: string
  name: string
  kind: string
  source: Array<string>
  accelerated: boolean
  acceleratedBy: Array<string>
  status: string
  phase: string
  message: string
  cachedPercent: number | null
  sizeBytes: number | null
  files: number | null
  runtime: string
  users: number | null
  usedBy: Array<string>
  createdAt: string | null
  operation: string
}

/** `ready` of `wanted` workers are ready. */
export interface DataSetRuntime {
  kind: string
  ready: number
  wanted: number
  parts: Array<DataSetPart>
}

/** `workers`: how many its owner now asks for. */
export interface DataSetScaled {
  namespace: string
  name: string
  workers: number
}

/** A job, another owner of pods, or (`kind` is Pod) a pod that a person made. `job`: `type/name` of a training job, which has a page; "" = it is none. */
export interface DataSetUser {
  namespace: string
  kind: string
  name: string
  job: string
  pods: Array<DataSetPod>
}

/** The answer to a deletion. `isEnding`: the object stays until what belongs to it is gone. */
export interface Deleted {
  deleted: string
  isEnding: boolean
}

/** A change of one object of the cluster. `verb`: create, update or delete. `namespace`: "" = of the whole cluster. */
export interface Effect {
  verb: string
  kind: string
  namespace: string
  name: string
}

/** An operation of the history, whose record is gone or will go. `state`: Succeeded, Failed or Cancelled. */
export interface EndedOperation {
  id: string
  kind: string
  subject: string
  state: string
  createdBy: string
  createdAt: string
  endedAt: string
  message: string
}

/** The newest first. `before`: what the next page is asked with, "" = there is none. */
export interface EndedOperationPage {
  generatedAt: string
  size: number
  before: string
  items: Array<EndedOperation>
}

/** Every answer from 400 up. `requestId` is also in the header `X-Request-Id` and in the server's log. `current`: with `conflict` the object as it is now, else null. */
export interface ErrorAnswer {
  ok: boolean
  status: number
  code: string
  error: string
  hint: string
  fields: Array<FieldFault>
  requestId: string
  current: unknown
}

export interface EventRow {
  at: string | null
  type: string
  reason: string
  object: string
  message: string
  count: number
}

/** The user in another system. `authType`: `oidc` for one who signs in at the OpenID Connect provider; `uid`: as that system names the user. */
export interface ExternalPerson {
  authType: string
  uid: string
  name: string
}

/** `index` is null if a node offers fewer GPUs than it has and it is unknown which are missing. */
export interface FaultyGpu {
  node: string
  index: number | null
  uuid: string
  model: string
  reason: string
}

/** `clock`: whether `/clock` moves this cluster's time. `historySeconds`: how far back charts reach; null where Prometheus answers, which alone knows. */
export interface Features {
  prometheus: boolean
  clock: boolean
  historySeconds: number | null
}

/** What is wrong with one field of a body. `rule`: which rule it breaks, `code`: the same as the rule's own part of the program names it, "" = there is no other name. */
export interface FieldFault {
  path: string
  rule: string
  error: string
  code: string
}

export interface GpuCounts {
  total: number
  allocated: number
  unhealthy: number
}

export interface GpuList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<ListedGpu>
}

/** `teams` are namespaces. State numbers: 0 free, 1 allocated, 2 shared, 3 unhealthy, 4 draining, 5 unknown (who holds it), 6 closed (without a holder, on a node that is cordoned or not ready), 7 unreachable (its node does not report). */
export interface GpuMap {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  teams: Array<string>
  models: Array<string>
  modes: Array<string>
  statuses: Array<string>
  nodes: Array<MapNode>
}

/** `usedOfMiB`: total memory of the GPUs that report used memory; that of others is unknown. */
export interface GpuMemory {
  totalMiB: number | null
  allocatedMiB: number | null
  usedMiB: number | null
  usedOfMiB: number | null
}

/** What the GPUs of a node were, in GPU-hours, and what each part cost (null: no price). `used`, `idle` and `unknown` were held by pods; `free`, `stranded` and `broken` were not. */
export interface GpuMoney {
  gpuHours: number
  usedGpuHours: number
  idleGpuHours: number
  unknownGpuHours: number
  freeGpuHours: number
  strandedGpuHours: number
  brokenGpuHours: number
  cost: string | null
  usedCost: string | null
  idleCost: string | null
  unknownCost: string | null
  freeCost: string | null
  strandedCost: string | null
  brokenCost: string | null
}

/** `unhealthy`: Ready is not True. `faulty`: at least one broken card, whatever the node reports. */
export interface GpuNodeCounts {
  total: number
  allocated: number
  unhealthy: number
  faulty: number
}

/** One container of a pod on one GPU. `container` is "" if only the pod is known. `job` is `type/name` or empty; `usedMiB` is null if it is not reported per container. `mode`: exclusive, share, timeslice, mps or mig. `units` of a shared card. */
export interface GpuPod {
  namespace: string
  name: string
  container: string
  job: string
  mode: string
  units: number
  corePercent: number
  allocatedMiB: number | null
  usedMiB: number | null
  utilPercent: number | null
}

/** `mode`: exclusive, shared, draining, topology or mig. `units`: what a shared card is divided into. `unitsFree`, `memoryFreeMiB`, `coreFreePercent`: what a new pod could get; a broken or draining card gives nothing. Core percents are null where the node offers none. `migInstances`: of a divided card, as its exporter reports them; the card's memory and utilization are their sums. `flags`: `used-without-allocation`, `idle` (allocated and below 1 % for an hour), `overcommitted`. */
export interface GpuRow {
  index: number
  uuid: string
  model: string
  mode: string
  units: number
  unitsAllocated: number
  unitsFree: number
  coreAllocatedPercent: number | null
  coreFreePercent: number | null
  memoryTotalMiB: number | null
  memoryAllocatedMiB: number | null
  memoryFreeMiB: number | null
  memoryUsedMiB: number | null
  utilPercent: number | null
  temperatureC: number | null
  powerW: number | null
  health: string
  reason: string
  lastXid: LastXid | null
  idleSeconds: number | null
  pods: Array<GpuPod>
  migInstances: Array<MigInstanceRow>
  flags: Array<string>
}

/** What a group becomes. `users`: ids of all who shall list it, null = as it is. */
export interface GroupChange {
  groupName: string
  users?: Array<string> | null
  defaultRoles?: Array<string> | null
  defaultClusterRoles?: Array<string> | null
  userCaps?: Record<string, Record<string, string>> | null
}

export interface GroupList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<GroupRow>
}

/** A new group. `leaf`: full name of the leaf of the quota tree. `users`: ids of those who are put into it. */
export interface GroupOrder {
  groupName: string
  leaf: string
  users?: Array<string>
}

/** A user group that follows its leaf to another name. */
export interface GroupRename {
  group: string
  before: string
  after: string
}

/** `name`: of the object. `users`: ids of those who list the group. Others: see `UserRow`. */
export interface GroupRow {
  name: string
  groupName: string
  leaf: string
  namespaces: Array<string>
  users: Array<string>
  defaultRoles: Array<string>
  defaultClusterRoles: Array<string>
  userCaps: Record<string, Record<string, string>>
  state: string
  message: string
  createdAt: string | null
  version: string
}

/** `stale` is false and `warnings` is empty: the rows contain everything. */
export interface HealthPage {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  sentence: Sentence
  items: Array<HealthRow>
}

/** `state` is one of `STATES`. `found`: what was seen. `affects`: what of the console depends on it. `setting`: what to set, null = nothing is to be done. `sources`: inputs of pages that it stands for, as warnings name them. */
export interface HealthRow {
  name: string
  state: string
  found: Array<Sentence>
  affects: Sentence
  setting: Sentence | null
  sources: Array<string>
}

/** `ownerKind`, `owner`: the object that created the pod, "" for a pod without an owner. `job`: of a training job's pod, `type/name`. `gpus` counts cards, with fractions for shared ones. `gpuIndexes` is empty if unknown. `heldSince`: when it was bound. `idleSeconds`: how long all its cards have been idle, 0 if it is known to use one, null if unknown. `gpusIdle`: its GPUs that have been idle for an hour. `gpuHoursIdle`: idle GPU hours of the last day; without a Prometheus of the last hour, and of the current idle time. `gpuMemoryUsedOfMiB`: its memory on the cards that report its use. */
export interface Holder {
  namespace: string
  name: string
  ownerKind: string
  owner: string
  job: string
  user: string
  quotaPath: string
  node: string
  status: string
  gpus: number
  gpuIndexes: Array<number>
  units: number
  gpuMemoryAllocatedMiB: number | null
  gpuMemoryUsedMiB: number | null
  gpuMemoryUsedOfMiB: number | null
  gpuUtilPercent: number | null
  heldSince: string | null
  idleSeconds: number | null
  gpusIdle: number
  gpuHoursIdle: number
}

/** Holders of one owner, leaf, user or namespace; `name` is "" if it is unknown. `kind`, `namespace`, `job`: of an owner. `gpusIdle`: GPUs that have been idle for an hour. `gpuHoursIdle`: idle GPU hours of the last day. */
export interface HolderGroup {
  name: string
  kind: string
  namespace: string
  job: string
  pods: number
  gpus: number
  gpusIdle: number
  gpuHoursIdle: number
  gpuMemoryAllocatedMiB: number | null
  gpuMemoryUsedMiB: number | null
  gpuMemoryUsedOfMiB: number | null
  heldSince: string | null
}

export interface HolderGroupList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<HolderGroup>
}

export interface HolderList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<Holder>
}

/** `nodes`, `totals`: how the GPU money of the period is split, by node; a researcher gets neither, because capacity belongs to all. */
export interface IdleList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  period: UsagePeriod
  currency: string
  nodes: Array<NodeGpuMoney>
  totals: GpuMoney | null
  items: Array<IdleRow>
}

/** GPUs for which money is spent and on which nothing runs. `reason`: idle, stranded, broken, free or unknown. Rows of `idle` and `unknown` are pods; the others are nodes, whose owner fields are "". `gpus`: now. `since`: the beginning of the idle time, or of the period if it was idle before. `gpuHours`, `cost`: of the period. `advice`: what to do. */
export interface IdleRow {
  reason: string
  namespace: string
  pod: string
  node: string
  model: string
  user: string
  leaf: string
  job: string
  jobType: string
  gpus: number
  since: string | null
  gpuHours: number
  cost: string | null
  holders: Array<string>
  advice: Sentence
}

/** One pod of the job. `ageSeconds` is the instance's own. First start to last finish, or waiting since it was made. `restarts`: null of a deleted job. */
export interface Instance {
  name: string
  role: string
  status: string
  node: string
  ip: string
  gpus: number
  gpuIndexes: Array<number>
  gpuUuids: Array<string>
  gpuMemoryAllocatedMiB: number | null
  gpuMemoryUsedMiB: number | null
  gpuMemoryUsedOfMiB: number | null
  gpuUtilPercent: number | null
  restarts: number | null
  ageSeconds: number
  isChief: boolean
  waiting: Waiting | null
}

/** `unknown`: on unreachable nodes; they may or may not run. */
export interface InstanceCounts {
  desired: number
  running: number
  unknown: number
  pending: number
  succeeded: number
  failed: number
}

/** `logs`: containers of all instances, the chief's first. */
export interface InstanceList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  items: Array<Instance>
  logs: Array<InstanceLog>
}

/** A container that may have a log. `begun`: whether it has one; otherwise `why` is the reason, and `sentence` the same if translatable. */
export interface InstanceLog {
  pod: string
  container: string
  begun: boolean
  running: boolean
  restarts: number
  why: string
  sentence: Sentence | null
}

/** `kubeconfig`: the text of the file, with the token in it. `server`: the API server in it. */
export interface IssuedKubeconfig {
  id: string
  fileName: string
  kubeconfig: string
  server: string
  expiresAt: string
}

/** `token` is shown once and kept nowhere. `id`: of the credential, which revokes it. */
export interface IssuedToken {
  id: string
  token: string
  expiresAt: string
}

/** The body that submits a job like an existing one, under another name. `lost`: paths in the existing object of what the body does not carry over. */
export interface JobClone {
  submission: JobSubmission
  lost: Array<string>
}

/** The cost of one job, as far as the ledger goes back. `figures.pods`: its pods. `others`: uids of earlier jobs of the same name, the newest first. */
export interface JobCost {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  uid: string
  namespace: string
  name: string
  type: string
  user: string
  leaf: string
  start: string | null
  end: string | null
  currency: string
  figures: UsageFigures
  pods: Array<PodCost>
  others: Array<string>
}

/** Suspended, queuing and submitted jobs are pending; restarting and scaling ones are running. */
export interface JobCounts {
  running: number
  pending: number
  succeeded: number
  failed: number
}

/** `life`: its known steps, in order; steps with an unknown time are omitted. */
export interface JobDetail {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  job: JobRow
  life: Array<LifeStep>
  instances: Array<Instance>
  events: Array<EventRow>
}

export interface JobEvents {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  items: Array<EventRow>
}

/** One flag of the type's command, without its dashes. `kind`: a text, many texts, or a truth. `standard`: the value without the flag (`true` or `false` of a truth). `placeholder`, `help`: in English, as the command's own help has them. */
export interface JobFlag {
  name: string
  kind: 'many' | 'text' | 'truth'
  standard: string
  placeholder: string
  help: string
}

/** What a type takes: a type of `arena submit`, one of serving jobs, or `cron-tfjob`. `kind`: of the object; of a serving job the title of its type. `isServed`: whether the cluster serves the object. `command`: what the command is, in English; `needsCommand`: it must be given. */
export interface JobForm {
  type: string
  family: 'cron' | 'serve' | 'train'
  kind: string
  isServed: boolean
  needsCommand: boolean
  command: string
  flags: Array<JobFlag>
}

/** `namespaces`: those in which the subject may submit. */
export interface JobFormList {
  items: Array<JobForm>
  namespaces: Array<string>
}

/** `missingTypes`: types of jobs that this cluster does not serve; one asked for is a warning. */
export interface JobList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<JobRow>
  missingTypes: Array<string>
}

/** The job's object as YAML. `redacted`: where a value was taken out, as paths. */
export interface JobManifest {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  yaml: string
  redacted: Array<string>
}

/** `suspended`: true stops the pods of the job and keeps the job; false starts it again. */
export interface JobOrder {
  suspended: boolean
}

/** `live`: the object still exists; a job that was deleted is shown from the ledger, with `deletedAt`. `heldSeconds`: since the first pod of those that hold something was bound, null while none does; a job may have waited long before. `waiting`: of a pending job, and of one that restarts while none of its pods runs. `gpuMemoryUsedOfMiB`: its memory on the cards that report its use. `gpuSeconds`, `coreSeconds`, `cost` and `listCost` need the ledger: null without it. */
export interface JobRow {
  namespace: string
  name: string
  type: string
  status: string
  state: string
  waiting: Waiting | null
  durationSeconds: number
  heldSeconds: number | null
  gpusRequested: number
  gpusAllocated: number
  gpuMemoryRequestedMiB: number | null
  gpuMemoryAllocatedMiB: number | null
  gpuMemoryUsedMiB: number | null
  gpuMemoryUsedOfMiB: number | null
  gpuUtilPercent: number | null
  uid: string
  apiVersion: string
  user: string
  quotaPath: string
  createdAt: string | null
  startedAt: string | null
  finishedAt: string | null
  deletedAt: string | null
  instances: InstanceCounts
  nodes: Array<string>
  gpuSeconds: number | null
  coreSeconds: number | null
  cost: string | null
  listCost: string | null
  live: boolean
}

/** What to submit. `type`: of a form. `flags`: those of the type's command without their dashes: a text, a list of texts, or true or false. Files of the user's machine (`config-file`, `file`) are none of them. */
export interface JobSubmission {
  type: string
  namespace: string
  name: string
  command?: string
  flags?: Record<string, boolean | string | Array<string>>
}

/** `created`: the objects, in order. `type`: of the job that was created, which another kind may replace; `cron` of a cron. */
export interface JobSubmitted {
  namespace: string
  type: string
  name: string
  line: string
  created: Array<Effect>
}

/** `waiting`: null of a job that does not wait. */
export interface JobWhy {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  waiting: Waiting | null
}

export interface JobWritten {
  namespace: string
  type: string
  name: string
  suspended: boolean
}

/** A role that is bound to the user. `namespaces`: where; `isClusterWide`: by a ClusterRoleBinding. `rules`: none of a role that is not Fairlead's. */
export interface KubectlRight {
  role: string
  namespaces: Array<string>
  isClusterWide: boolean
  rules: Array<KubectlRule>
}

/** `kind`: `write` (all usual verbs), `read` (get, list, watch), or `other` (`verbs`). `resources`: with their API group, such as `jobs.batch`. */
export interface KubectlRule {
  kind: string
  verbs: Array<string>
  resources: Array<string>
}

export interface LastXid {
  code: number
  at: string | null
}

/** Pods of a leaf, now and in the settled state. */
export interface LeafEffect {
  name: string
  path: string
  runningBefore: number
  runningAfter: number
  waitingBefore: number
  waitingAfter: number
}

/** `mine`: of `used`, what is mine. `borrowable`: how much above its guarantee it could be given now. `guaranteed` is what counts: less than `guaranteedWritten` where nodes have less than the mins promise. Numbers are in `unit` (cores, bytes, GiB, count); a `max` or `borrowable` without bound is null. */
export interface LeafResource {
  resource: string
  unit: string
  used: number
  mine: number
  guaranteed: number
  guaranteedWritten: number
  max: number | null
  borrowable: number | null
}

/** One step of a job's life. `step`: created, pods (made over a minute after the job, as those that replace others), admitted, scheduled, images, running, restarted or ended. `seconds`: how long it lasted, to the next step or to now; null of the end. `count`: pods made later, scheduled, pods that have run (null where none is left), or restarts; `of`: pods that there are. `status`: the board's word at the end, else "". */
export interface LifeStep {
  step: string
  at: string
  seconds: number | null
  count: number | null
  of: number | null
  status: string
}

/** `holders`: pods as `namespace/name`. `units`, `unitsAllocated`: of a shared card, in its node's unit; 0 of others. `memoryAllocatedMiB` is null if unknown. `idleSeconds`: how long below 1 %, null when busy or unknown. */
export interface ListedGpu {
  node: string
  index: number
  uuid: string
  model: string
  mode: string
  state: string
  health: string
  holders: Array<string>
  units: number
  unitsAllocated: number
  utilPercent: number | null
  memoryUsedMiB: number | null
  memoryAllocatedMiB: number | null
  memoryTotalMiB: number | null
  temperatureC: number | null
  powerW: number | null
  idleSeconds: number | null
}

/** `subject`: `dataset/NAMESPACE/NAME` or `component/ID`. `step`: the title of the step at work, of the failed one, or ""; `stepsDone` of `stepsTotal` are done. `holder`: the process at work. */
export interface ListedOperation {
  id: string
  kind: string
  subject: string
  state: string
  step: string
  stepsDone: number
  stepsTotal: number
  createdBy: string
  createdAt: string | null
  updatedAt: string | null
  holder: string
  message: string
}

/** Name, then indexes into `models`, `modes` and `statuses`, the cells, and the indexes of their GPUs. `indexes` is empty when they are 0, 1, 2, … */
export type MapNode = [string, number, number, number, Array<[number, number | null, number | null, number | null, number, number | Array<[number, number]>]>, Array<number>]

/** `csrf` goes back in `X-Fairlead-Csrf` with every write. `version` is the server's program version. `build` is the build of the page that this server serves: a page of another build is outdated. `way`: how the user signed in; `none` where there is no sign-in. `canActAs`: ids of the users that a client with the code of a simulated cluster may look as. */
export interface Me {
  user: Person
  way: string
  canActAs: Array<string>
  csrf: string
  cluster: ClusterName
  clock: ClockFace
  features: Features
  version: string
  build: string
}

/** One MIG instance of a card: its id there, its profile (`1g.18gb`), and who has it. */
export interface MigInstanceRow {
  id: number
  profile: string
  memoryTotalMiB: number | null
  memoryUsedMiB: number | null
  utilPercent: number | null
  pods: Array<GpuPod>
}

/** Of all nodes with GPUs of one model. */
export interface ModelGpuMoney {
  gpuHours: number
  usedGpuHours: number
  idleGpuHours: number
  unknownGpuHours: number
  freeGpuHours: number
  strandedGpuHours: number
  brokenGpuHours: number
  cost: string | null
  usedCost: string | null
  idleCost: string | null
  unknownCost: string | null
  freeCost: string | null
  strandedCost: string | null
  brokenCost: string | null
  model: string
}

/** From `start` to `until`: the end of the month or of its last folded day. `isWhole`: all days of the month are contained. `asOf`: prices entered later do not count; null = all count. `nodes`, `modelTotals`: null, and `models` empty, where only some namespaces are reported. */
export interface MonthReport {
  month: string
  zone: string
  start: string
  end: string
  until: string
  isWhole: boolean
  asOf: string | null
  currency: string
  totals: UsageFigures
  nodes: NodeMoney | null
  leaves: Array<UsageRow>
  users: Array<UsageRow>
  namespaces: Array<UsageRow>
  models: Array<ModelGpuMoney>
  modelTotals: GpuMoney | null
  unpriced: Array<UnpricedClass>
  gaps: Array<UnrecordedTime>
  prices: Array<ReportPrice>
}

/** A pod that would be admitted or evicted. For an evicted pod: `how` (`evict`, or `suspend` of its job) and `forUnit`, the unit that gets its room. For an admitted pod: `isGuaranteed`, within its leaf's min. */
export interface MovedPod {
  namespace: string
  pod: string
  leaf: string
  isGuaranteed: boolean
  how: string
  forUnit: string
}

/** `gpusIdle`: those that have done nothing for an hour. */
export interface MyHold {
  pods: number
  gpus: number
  gpusIdle: number
  running: number
  pending: number
}

/** `resources`: those of which the leaf is guaranteed, allowed or used something; GPUs first. */
export interface MyLeaf {
  path: string
  name: string
  namespaces: Array<string>
  resources: Array<LeafResource>
}

/** `job`: `type/name`, "" of a pod that is of none. `line`: what the queue is: `quota` of its leaf, or the `scheduler`, or null where it waits for nothing that others wait for. `position` from 1; `ahead`: the nearest of those before it, of `aheadCount`. */
export interface MyWait {
  namespace: string
  name: string
  job: string
  since: string | null
  gpus: number
  units: number
  waiting: Waiting
  line: string | null
  position: number | null
  ahead: Array<QueuedBefore>
  aheadCount: number
}

/** `users`, `allNamespaces`: the choices. `namespaces`: mine. */
export interface MyWork {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  user: string
  namespace: string
  users: Array<string>
  allNamespaces: Array<string>
  namespaces: Array<string>
  sentence: Sentence
  held: MyHold
  leaves: Array<MyLeaf>
  starts: Array<Start>
  waits: Array<MyWait>
}

export interface NamespaceUse {
  namespace: string
  used: number
}

/** The body of a write that needs none. */
export interface NoBody {
}

/** `sharing` is null on a node that shares nothing. */
export interface NodeDetail {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  node: NodeRow
  sharing: Sharing | null
  conditions: Array<ConditionRow>
  taints: Array<TaintRow>
  labels: Record<string, string>
  kubeletVersion: string
  runtimeVersion: string
  osImage: string
  gpus: Array<GpuRow>
  pods: Array<NodePod>
  events: Array<EventRow>
}

/** Of one node. `lacking`: what waiting pods lack there while GPUs are stranded; `holders`: the pods, as `namespace/name`, that hold most of it. */
export interface NodeGpuMoney {
  gpuHours: number
  usedGpuHours: number
  idleGpuHours: number
  unknownGpuHours: number
  freeGpuHours: number
  strandedGpuHours: number
  brokenGpuHours: number
  cost: string | null
  usedCost: string | null
  idleCost: string | null
  unknownCost: string | null
  freeCost: string | null
  strandedCost: string | null
  brokenCost: string | null
  node: string
  model: string
  lacking: string
  holders: Array<string>
}

export interface NodeList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<NodeRow>
}

/** All nodes: their price times their time is `cost`, of which pods cost `podsCost`. `rest`: what no pod held. Null: no price. */
export interface NodeMoney {
  nodeHours: number
  unpricedNodeHours: number
  cost: string | null
  podsCost: string | null
  rest: string | null
}

/** `schedulable`: false cordons the node: no new pod gets it; true uncordons it. */
export interface NodeOrder {
  schedulable: boolean
}

/** A pod that holds GPUs of this node. `gpuIndexes` is empty if unknown. `pending`: it shares a GPU, and no usable annotation names it (PENDING in `kubectl inspect cgpu`). `units` of `aliyun.com/gpu-mem`: granted, or requested by a pending pod. A terminating pod keeps what it holds until it is gone. `heldSince`: when it was bound. */
export interface NodePod {
  namespace: string
  name: string
  job: string
  phase: string
  status: string
  terminating: boolean
  pending: boolean
  gpuIndexes: Array<number>
  units: number
  gpus: number
  gpuMemoryAllocatedMiB: number | null
  createdAt: string | null
  heldSince: string | null
}

/** `status`: Ready, NotReady or Unknown. `role`: comma list or `<none>`. `gpusAllocated` of a shared node is the sum of fractions. `gpu_units_...`: of `aliyun.com/gpu-mem`, in `gpuUnit` (GiB or MiB; "" on nodes without). `gpuUnitsPending`: of pods that run here on an unknown card. `gpuUnitsOvercommitted`: granted on cards that have since become smaller. `gpusDraining`: cards that switch between exclusive and shared use and accept no new pods. `gpuMemoryUsedOfMiB`: total memory of the cards that report used memory; percentages refer to it. */
export interface NodeRow {
  name: string
  ip: string
  role: string
  status: string
  schedulable: boolean
  gpuMode: string
  gpusTotal: number
  gpuMemoryTotalMiB: number | null
  gpusAllocated: number
  gpuMemoryAllocatedMiB: number | null
  gpuMemoryUsedMiB: number | null
  gpuMemoryUsedOfMiB: number | null
  gpuUtilPercent: number | null
  gpuModel: string
  isolation: string
  gpusUnhealthy: number
  gpusDraining: number
  gpusReporting: number
  gpuUnit: string
  gpuUnitsTotal: number
  gpuUnitsAllocated: number
  gpuUnitsPending: number
  gpuUnitsOvercommitted: number
  driverVersion: string
  instanceType: string
  zone: string
  createdAt: string | null
  cpuTotalCores: number
  memoryTotalMiB: number
}

export interface NodeWritten {
  name: string
  schedulable: boolean
}

/** `undo`: what follows a failed write or a cancellation. `canCancel`, `canRetry`: now; `isCancelled`: it ends before its next step. */
export interface OperationDetail {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  row: ListedOperation
  steps: Array<StepRow>
  undo: Array<StepRow>
  isCancelled: boolean
  canCancel: boolean
  canRetry: boolean
}

export interface OperationList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<ListedOperation>
}

/** `attention`: what needs attention, the worst first. */
export interface Overview {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  sentence: Sentence
  attention: Array<AttentionLine>
  gpuNodes: GpuNodeCounts
  gpus: GpuCounts
  gpuMemory: GpuMemory
  gpuUtilPercent: number | null
  gpusReporting: number
  jobs: JobCounts
  idleGpus: number
  pools: Array<Pool>
  topConsumers: Array<Consumer>
  starvedLeaves: Array<StarvedLeaf>
  faultyGpus: Array<FaultyGpu>
  recentWarnings: Array<RecentWarning>
}

/** `kubectl`: none for a client that is no user. */
export interface OwnRights {
  console: Array<ConsoleRight>
  kubectl: Array<KubectlRight>
}

/** The user of the account that signed in: an administrator. The id is made of the name. */
export interface OwnUserOrder {
  userName: string
}

/** Moments from `first` to `last` can be shown; null: there is no record yet. `gaps`: times between, in which no recorder ran, the oldest first. `zone`: of billing days, for times without a zone. */
export interface PastTimes {
  first: string | null
  last: string | null
  gaps: Array<UnrecordedTime>
  zone: string
}

/** `id`: of the User, "" for one without a User. `namespaces`, `leaves`, `groups`: the own ones; an administrator sees those of others, too. */
export interface Person {
  name: string
  role: string
  id: string
  groups: Array<string>
  leaves: Array<string>
  namespaces: Array<string>
}

/** Starts a plan, whose `planId` is the id of the operation. */
export interface PlanOrder {
  planId: string
}

/** One of several, as in `ComponentPlanned`. `components`: its id, or those of all parts of the installation, which are written together. */
export interface PlannedComponent {
  components: Array<string>
  checks: Array<ComponentCheck>
  changes: Array<ChangedObject>
  same: number
  steps: Array<string>
}

/** One pod on one node with unchanged amounts. `status`: running, finished, deleted, changed (another row follows) or inferred (it ended while no recorder ran). `end`: null = it still holds this. `instanceType`: of the node, "" = unknown. `perHour`, `listPerHour`: the pod's cost per hour with the newest price of its time. */
export interface PodCost {
  pod: string
  node: string
  status: string
  start: string
  end: string | null
  seconds: number
  gpus: number
  gpuMemoryMiB: number
  cores: number
  memoryMiB: number
  model: string
  instanceType: string
  perHour: string | null
  listPerHour: string | null
  cost: string | null
  listCost: string | null
  savedPercent: number | null
}

/** All GPUs of one model and mode. `gpusFree`: whole cards that could be had now, the cells that the map shows as free. `gpusFreeUnnamed`: more free ones among cards with unknown holders. `largestFreeMiB`: the most that a pod can get on one shared card now; null for whole cards. */
export interface Pool {
  model: string
  mode: string
  nodes: number
  gpus: number
  gpusAllocated: number
  gpusFree: number
  gpusFreeUnnamed: number
  largestFreeMiB: number | null
  gpusUnhealthy: number
}

/** Which folders of a data set are read into its cache. `paths`: in the data set, all of it if empty. `replicas`: copies of each file in the cache. `schedule`: of cron, "" = once. */
export interface PreheatOrder {
  paths?: Array<string>
  replicas?: number
  schedule?: string
}

/** The answer to `dryRun=true`: nothing was changed. `fields`: why the write would be refused; `effects`: what would change in the cluster, the object itself first. */
export interface Preview {
  valid: boolean
  fields: Array<FieldFault>
  effects: Array<Effect>
}

/** Nodes of one price class in the last 90 days, and the price that counts now. `price`: its id, null = none. */
export interface PriceClassRow {
  labels: Record<string, string>
  gpus: number
  cores: number
  memoryMiB: number
  nodeHours: number
  price: number | null
}

/** `classes`: what can be matched. `zone`: of billing days. */
export interface PriceList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  currency: string
  zone: string
  classes: Array<PriceClassRow>
  items: Array<PriceRow>
}

/** A new price, or with `ended` the end of a matcher's prices. `matcher`: labels of nodes, or `gpu-model`. `validFrom`: a date (the beginning of its billing day) or RFC 3339 with its zone. */
export interface PriceOrder {
  matcher: Record<string, string>
  validFrom: string
  currency?: string
  nodeHour?: string
  listNodeHour?: string
  gpuSharePercent?: number | null
  note?: string
  ended?: boolean
}

/** What would be stored. `fields`: why it is refused; `price`: null then. */
export interface PricePreview {
  valid: boolean
  fields: Array<FieldFault>
  warnings: Array<Sentence>
  price: PriceRow | null
}

/** A price as it was entered. Money: decimal strings of the currency. `matcher`: labels that a node must have; {} = every node. `gpuSharePercent`: null = the default. `validFrom`: the beginning of a billing day. `inForce`: it counts now for some node of the last 90 days. `classes`: how many price classes of that time it matches. `ended`: from then on the matcher has no price. */
export interface PriceRow {
  id: number
  matcher: Record<string, string>
  currency: string
  nodeHour: string
  listNodeHour: string | null
  gpuSharePercent: number | null
  validFrom: string
  enteredAt: string
  enteredBy: string
  note: string
  ended: boolean
  inForce: boolean
  classes: number
}

/** `warnings`: what the administrator should check; the price is stored. */
export interface PriceWritten {
  price: PriceRow
  warnings: Array<Sentence>
}

/** A job or pod before mine in the queue. `job`: `type/name` of a training job, else "". */
export interface QueuedBefore {
  namespace: string
  name: string
  job: string
  user: string
}

/** One resource of a node, in `unit`. `max` is null when unlimited. `minText` and `maxText` are the same as quantities, "" for a `max` that is unlimited. `minCounted` is what counts of `min`: less where the cluster has less than the mins promise. `overMax`: what is used above `max`. `waitingPods`: those that ask for the resource and wait, in the node and below it. */
export interface QuotaBounds {
  resource: string
  unit: string
  min: number
  max: number | null
  minCounted: number
  overMax: number
  used: number
  minText: string
  maxText: string
  waitingPods: number
}

/** The effects of a changed tree. Nothing is written. `valid` false: the tree would be refused for its `faults`, and nothing else was computed. `admitted` and `evicted` in their order, the first 500 each, as `waiting`; the counts are of all. `leaves`: leaves that change. `plans`: number of plans until nothing is left to do. */
export interface QuotaEffects {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  valid: boolean
  sentence: Sentence
  faults: Array<TreeFault>
  admitted: Array<MovedPod>
  admittedCount: number
  evicted: Array<MovedPod>
  evictedCount: number
  leaves: Array<LeafEffect>
  waiting: Array<WaitingUnit>
  waitingCount: number
  plans: number
}

/** A node without room: what is asked of it, what is used and promised, and its ceiling, in `unit`. */
export interface QuotaNodeWithoutRoom {
  node: string
  resource: string
  unit: string
  asks: number
  used: number
  claimed: number
  max: number
}

/** `nodes`: the changes that were asked for, as MODEL=+N. */
export interface QuotaReplay {
  period: UsagePeriod
  nodes: Array<string>
  currency: string
  leaves: Array<ReplayLeaf>
  totals: ReplayLeaf
  freeHappened: ReplayFree
  freeInForce: ReplayFree
  freeAsked: ReplayFree
  fidelity: ReplayFidelity
}

/** The last replay that was asked for. `state`: none, running, done, failed or cancelled. `id`: "" without a replay. `doing`: reading, in-force (the replay with the trees that were in force) or asked. `part`: how much of that is done, from 0 to 1. `hasTree`: a whole tree was given. `error`, `hint`: of one that failed. `result`: of one that is done. */
export interface QuotaReplayState {
  state: string
  id: string
  askedBy: string
  startedAt: string | null
  period: string
  nodes: Array<string>
  changes: Array<BoundsChange>
  hasTree: boolean
  doing: string
  part: number
  error: string
  hint: string
  result: QuotaReplay | null
}

/** `borrowed` is used above min; `lent` is min that others use. `requested` counts waiting pods too. `claimed`: promised to pods that wait until there is room. `lost`: of pods that should be gone long ago; they still hold it and are charged no longer, so that `used` is less than what is held. `byUser` is of leaves. `min` is what counts: less than `minWritten` where the cluster has less than the mins promise. `overMax` is used above max: nothing is admitted there until it is gone. `waitingPods`, `waitingJobs`: those that wait and ask for this resource. */
export interface QuotaRow {
  name: string
  path: string
  parent: string
  depth: number
  isLeaf: boolean
  namespaces: Array<string>
  resource: string
  unit: string
  max: number | null
  min: number
  minWritten: number
  overMax: number
  used: number
  requested: number
  borrowed: number
  lent: number
  claimed: number
  lost: number
  waitingPods: number
  waitingJobs: number
  byNamespace: Array<NamespaceUse>
  byUser: Array<UserUse>
}

/** The whole tree, parents before children, the root first. `createNamespaces`: those of leaves that do not exist are created before. */
export interface QuotaTreeOrder {
  nodes: Array<TreeNodeOrder>
  createNamespaces?: boolean
}

/** All nodes, parents before children in the order written, each with all `resources` in this order. For administrators: `treeVersion` is what `If-Match` of a write names: it changes with the tree and not with its status; `none` = there is no tree, "" = the tree cannot be written here. `managed`: resources that the root names. */
export interface QuotaTreePage {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  sentence: Sentence
  resources: Array<string>
  items: Array<QuotaTreeRow>
  faults: Array<TreeFault>
  treeVersion: string
  managed: Array<string>
}

/** What saving a tree does. Nothing is written. `fields`: refused cells; while there are some, the rest is empty. `nodes`: what differs from the stored tree. `whatIf`: pods and leaves, by the controller's plan. `overMax`: nodes that then use more than their max, where nothing is admitted. `raised`: leaves with a larger min. `governed`, `released`: namespaces that come under quota or leave it; `unknownNamespaces` do not exist. `groups`: user groups whose leaf is renamed. */
export interface QuotaTreePreview {
  valid: boolean
  fields: Array<FieldFault>
  effects: Array<Effect>
  nodes: Array<TreeNodeChange>
  whatIf: QuotaEffects | null
  overMax: Array<string>
  raised: Array<string>
  governed: Array<string>
  released: Array<string>
  unknownNamespaces: Array<string>
  groups: Array<GroupRename>
}

/** `shortName`: the part of `name` after its parent's prefix. */
export interface QuotaTreeRow {
  name: string
  shortName: string
  path: string
  parent: string
  depth: number
  isLeaf: boolean
  namespaces: Array<string>
  attributes: Record<string, string>
  bounds: Array<QuotaBounds>
  waitingPods: number
}

/** A tree as it was once. `actor`: "" = another client than the console wrote it. `yaml`: its `spec`; `nodes`: the same, as a write takes it. */
export interface QuotaTreeVersion {
  id: number
  at: string
  actor: string
  summary: string
  yaml: string
  nodes: Array<TreeNodeOrder>
}

/** The newest first, at most 20. */
export interface QuotaTreeVersions {
  items: Array<QuotaTreeVersion>
}

/** The tree was written. `treeVersion`: its new version. */
export interface QuotaTreeWritten {
  treeVersion: string
}

/** `resources`: the managed resources in the order of the tables. `faults`: of the tree. */
export interface QuotaUsage {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<QuotaRow>
  resources: Array<string>
  faults: Array<TreeFault>
}

export interface QuotaWaitingList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<WaitingUnit>
}

/** The question: what would happen if these bounds were others? */
export interface QuotaWhatIf {
  changes: Array<BoundsChange>
}

/** Warnings of one reason about objects of one kind and namespace, represented by the newest. `count` of all of them; `objects`: how many they are about. `job` is `type/name`, or empty; `node` a name. */
export interface RecentWarning {
  at: string | null
  namespace: string
  object: string
  reason: string
  message: string
  count: number
  objects: number
  job: string
  node: string
}

export interface ReplayDifference {
  cause: string
  pods: number
  example: string
}

/** How far the replay with the trees in force is from what happened. */
export interface ReplayFidelity {
  happened: number
  replayed: number
  both: number
  withinTolerance: number
  toleranceSeconds: number
  outOfOrder: number
  medianSeconds: number
  worstSeconds: number
  worstPod: string
  differences: Array<ReplayDifference>
}

/** `pods`: places of workloads. Hours are rounded to four places, `waitedMeanSeconds` and `waitedP95Seconds` to thousandths. `waiting`: pods that wait at the end. `lostGpuHours`: what evicted pods had held, and hold again. `idleCost`: null without a price. */
export interface ReplayFigures {
  pods: number
  waitedHours: number
  waitedMeanSeconds: number
  waitedP95Seconds: number
  waiting: number
  evictions: number
  gpuHours: number
  idleGpuHours: number
  lostGpuHours: number
  idleCost: string | null
}

/** GPUs that no pod held. `cost`: null without a price. */
export interface ReplayFree {
  gpuHours: number
  cost: string | null
}

/** `leaf`: full name, "" in totals. `happened`: by the ledger; `inForce`: the replay with the trees that were in force; `asked`: the replay that was asked for. Null: it has no such leaf. */
export interface ReplayLeaf {
  leaf: string
  happened: ReplayFigures | null
  inForce: ReplayFigures | null
  asked: ReplayFigures | null
}

/** `period`: such as 24h or 30d, at most 90 days. `nodes`: more or fewer nodes of a model, as MODEL=+N. `changes`: of the cluster's tree; `tree`: another tree in their place, an ElasticQuotaTree in JSON, "" = none. Without both the trees stay that were in force. */
export interface ReplayOrder {
  period: string
  nodes?: Array<string>
  changes?: Array<BoundsChange>
  tree?: string
}

/** A price that counted in the month. */
export interface ReportPrice {
  id: number
  matcher: Record<string, string>
  nodeHour: string
  listNodeHour: string | null
  gpuSharePercent: number | null
  validFrom: string
  enteredAt: string
}

/** `workers`: caches, one on a node; at least 1. */
export interface ScaleOrder {
  workers: number
}

/** What `dryRun=true` answers: nothing was written. `checks`: all. `line`: the equal command. */
export interface ScalePreview {
  valid: boolean
  fields: Array<FieldFault>
  effects: Array<Effect>
  checks: Array<AccelerationCheck>
  line: string
}

/** The nearest first. `total` counts all that match, `leftOut` those of them that are not in `items`. */
export interface SearchAnswer {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  q: string
  total: number
  leftOut: number
  items: Array<SearchHit>
}

/** `kind`: node, gpu, job or pod. `name`: of a GPU its node's, with `gpuIndex` beside it. `job`: of a job and of its pods, `type/name`. `node`: where a pod is bound or a GPU sits. `holdsGpu`: the pod is a row of `/holders`. `field` is where the text stands: name, uid, uuid or label; `text` is the value of that field (`key=value` of a label), `piece` the part of it that matches. */
export interface SearchHit {
  kind: string
  namespace: string
  name: string
  job: string
  node: string
  gpuIndex: number | null
  holdsGpu: boolean
  field: string
  text: string
  piece: string
}

/** One sentence of state: `code` and `values` for the catalogues of the client, `text` in English. */
export interface Sentence {
  code: string
  values: Record<string, string | number | null>
  text: string
}

/** `type` as `arena serve list` prints it; `status`: Ready where as many pods are available as desired. `waiting`: what keeps a job that is not ready. `address` is "" where it has none. `ports`: how the model is asked, as `RESTFUL:8501`. `gpus`: what its pods hold. */
export interface ServingJob {
  namespace: string
  name: string
  type: string
  version: string
  status: string
  waiting: Waiting | null
  desired: number
  available: number
  address: string
  ports: Array<string>
  gpus: number
  user: string
  createdAt: string | null
  instances: Array<ServingPod>
}

export interface ServingList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<ServingJob>
}

/** One pod. `gpus` are cards' worth, fractions on shared ones; 0 of a pod that holds none. `ready`, `containers`: of its containers, how many are ready, and how many there are. */
export interface ServingPod {
  name: string
  status: string
  node: string
  ready: number
  containers: number
  restarts: number
  gpus: number
  createdAt: string | null
}

/** How a node shares its GPUs. `offers`: its labels let new pods in. `placement`: its own wish, "" = as the scheduler is set. `unitsFree`: on all cards together; `largestFree`: on the one that has most, which is what decides. `conflict`: labels that contradict each other. */
export interface Sharing {
  offers: boolean
  placement: string
  conflict: string
  unitsFree: number
  largestFree: number
  largestFreeMiB: number | null
}

/** Why the OIDC provider's answer did not sign in: as in an error. */
export interface SignInFailure {
  code: string
  error: string
  hint: string
}

/** `ways`: `code`, `oidc` and `token`; none where there is no sign-in. `failure`: of this browser's last sign-in at the OIDC provider. */
export interface SignInMethods {
  ways: Array<string>
  failure: SignInFailure | null
}

/** `secret`: a Kubernetes token, or the one-time code. */
export interface SignInOrder {
  way: 'code' | 'token'
  secret: string
}

/** `isSignedIn`: whether this browser is now. */
export interface SignedIn {
  isSignedIn: boolean
}

/** A pod that would have made room, and why it may not go. */
export interface SparedPod {
  pod: string
  why: string
}

/** What one pod of mine could get now, of one model of GPU. `amount` of `resource`: whole GPUs on one node (`unit` is ""), or memory on one shared GPU, in `unit`, which is `memoryMiB` of it. `node`: one with room, of `nodes`. `selector`: the label to request, `key=value`, "" = no label has the model. `guaranteed` null: quota does not count the namespace. `onNodes`: what the nodes have room for; if `amount` is less, `waiting` is the reason of quota, `clauses` its clauses, `reason` one word. */
export interface Start {
  namespace: string
  leaf: string
  resource: string
  model: string
  amount: number
  unit: string
  memoryMiB: number | null
  node: string
  nodes: number
  selector: string
  guaranteed: boolean | null
  onNodes: number
  reason: string | null
  waiting: string
  clauses: Array<Sentence>
  sentence: Sentence
}

/** A quota leaf below its guaranteed minimum while pods of it wait. `min`, `used` in `unit`. */
export interface StarvedLeaf {
  path: string
  resource: string
  unit: string
  min: number
  used: number
  waitingPods: number
}

/** `state`: Waiting, Running, Done, Failed, Skipped. `message`: what it waits for, or why it failed. `object`: the object in hand; `event`: its newest warning. */
export interface StepRow {
  title: string
  state: string
  startedAt: string | null
  endedAt: string | null
  message: string
  object: string
  event: string
}

/** Whether the console could use a database. `sentence`: the answer of the engine, `hint`: what to do. `settings`: the values of the installation that name it. The password is in none. */
export interface StoreChecked {
  ok: boolean
  sentence: string
  hint: string
  settings: Array<string>
}

/** A database: `url` without a password, such as `postgresql://USER@HOST:5432/DATABASE`. */
export interface StoreOrder {
  url: string
  password?: string
}

/** The answer to `dryRun=true`: nothing was created. `fields`, `effects`: as in `Preview`. `line`: the equal command line; `manifests`: the objects as YAML, without secret values; "" where the body is not complete. `notes`: what is not written as asked, in English. `verdict`: None also for a cron, whose jobs are created later, and where an operator determines the pods. */
export interface SubmitPreview {
  valid: boolean
  fields: Array<FieldFault>
  effects: Array<Effect>
  line: string
  manifests: string
  notes: Array<string>
  verdict: SubmitVerdict | null
}

/** Whether the job starts, from the cluster as it is now. `state`: `starts`, `waits`, `never` (it can never run here as it is written) or `unknown`. `reason`: of quota, as the board has it, "" = another. `message`: the sentence, `clauses`: its parts for translation. */
export interface SubmitVerdict {
  state: 'never' | 'starts' | 'unknown' | 'waits'
  reason: string
  message: string
  sentence: Sentence
  clauses: Array<Sentence>
}

export interface TaintRow {
  key: string
  value: string
  effect: string
}

/** `cell`: `name`, `namespaces`, a bound such as `min.cpu`, or an attribute such as `attributes.preempt-policy`. Texts are "" for nothing. */
export interface TreeCellChange {
  cell: string
  before: string
  after: string
}

/** What is wrong with the quota tree. `path`: the name of the node; `level`: `error` or `warning`. While one of them `stops`, nothing is admitted and nothing evicted. */
export interface TreeFault {
  path: string
  code: string
  message: string
  level: string
  stops: boolean
}

/** `change`: `added`, `removed` or `changed`. */
export interface TreeNodeChange {
  name: string
  change: string
  cells: Array<TreeCellChange>
}

/** A node as it should be written, by full names. `parent`: "" for the root. `formerly`: its name in the stored tree, "" for a new node. `min`, `max`: quantities by resource; an absent resource has no bound, "" at the root is unlimited. `attributes`: all of the node, null = as they are stored. */
export interface TreeNodeOrder {
  name: string
  parent: string
  formerly: string
  min: Record<string, string>
  max: Record<string, string>
  namespaces: Array<string>
  attributes: Record<string, string> | null
}

/** Nodes of one price class without a price. `labels`: what a price may match. */
export interface UnpricedClass {
  labels: Record<string, string>
  nodeHours: number
}

/** A time in which no recorder ran. */
export interface UnrecordedTime {
  start: string
  end: string
}

/** One billing day, or the part of it that is in the period, in GPU-hours. `day`: its date in the zone of the ledger. `rows`: in the order of `UsageDays.rows`; they add up to `busy` + `idle` + `unknown`, except for rounding. */
export interface UsageDay {
  day: string
  start: string
  rows: Array<number>
  busy: number
  idle: number
  unknown: number
}

/** Whose hours a part of a day is. `name`, `namespace`, `type`, `uid`: as in the table of usage. `isRest`: all rows that are not named, together. */
export interface UsageDayRow {
  name: string
  namespace: string
  type: string
  uid: string
  isRest: boolean
}

/** `rows`: the eight with most GPU-hours in the period, and the rest. `days`: every billing day of the period since the first record, the oldest first. `recordedSince`: when the ledger begins; null: it is empty. */
export interface UsageDays {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  by: string
  period: UsagePeriod
  recordedSince: string | null
  rows: Array<UsageDayRow>
  days: Array<UsageDay>
}

/** `idlePercent`: idle / (busy + idle), null if neither is known; `unknownPercent`: of the GPU-hours. `unpricedGpuHours`: GPU-hours of the time without a price, which no cost contains. `savedPercent`: 100 × (1 − cost / list cost). */
export interface UsageFigures {
  gpuHours: number
  gpuMemoryGibHours: number
  coreHours: number
  memoryGibHours: number
  idlePercent: number | null
  unknownPercent: number | null
  pods: number
  cost: string | null
  listCost: string | null
  savedPercent: number | null
  unpricedGpuHours: number
}

/** `by`: what a row is: user, namespace, leaf, job or model. `totals`: of all rows before filters. `currency`: "" = there are no prices. */
export interface UsageList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  by: string
  period: UsagePeriod
  currency: string
  totals: UsageFigures
  unpriced: Array<UnpricedClass>
  items: Array<UsageRow>
}

/** From `start` to `end`, as far as the ledger has it: `until`, and without `gaps`. `name`: as it was asked for. `zone`: of billing days. */
export interface UsagePeriod {
  name: string
  start: string
  end: string
  until: string
  zone: string
  gaps: Array<UnrecordedTime>
}

/** `name`: of the user, namespace, leaf, job or model; "" = of none. `namespace`, `type`, `uid`: of a job, else "". */
export interface UsageRow {
  gpuHours: number
  gpuMemoryGibHours: number
  coreHours: number
  memoryGibHours: number
  idlePercent: number | null
  unknownPercent: number | null
  pods: number
  cost: string | null
  listCost: string | null
  savedPercent: number | null
  unpricedGpuHours: number
  name: string
  namespace: string
  type: string
  uid: string
}

/** What a user becomes; `groups`: all of them. */
export interface UserChange {
  userName: string
  role: 'admin' | 'researcher'
  groups: Array<string>
  disabled: boolean
  external?: ExternalPerson | null
}

/** `namespace`: of the kubeconfig's context, "" = the first of the user's. */
export interface UserKubeconfigOrder {
  lifetimeSeconds?: number
  note?: string
  namespace?: string
}

export interface UserList {
  generatedAt: string
  stale: boolean
  version: string
  warnings: Array<Warning>
  total: number
  page: number
  size: number
  sentence: Sentence
  facets: Record<string, Array<string>>
  items: Array<UserRow>
}

/** A new user. The id is made of the name: in lower case, with a hyphen for each other character. */
export interface UserOrder {
  userName: string
  role?: 'admin' | 'researcher'
  groups?: Array<string>
  external?: ExternalPerson | null
}

/** `id`: of the user, also of the ServiceAccount. `roles`: `namespace: role` of each RoleBinding, `clusterRoles`: of each ClusterRoleBinding, as they exist. `state`: the reason of the condition `Ready`, such as `Bound`, `Pending` or `Disabled`; `message`: its sentence. `version`: what `If-Match` names. */
export interface UserRow {
  id: string
  userName: string
  role: string
  groups: Array<string>
  roles: Array<string>
  clusterRoles: Array<string>
  namespaces: Array<string>
  state: string
  message: string
  disabled: boolean
  deletable: boolean
  external: ExternalPerson | null
  createdAt: string | null
  version: string
}

/** `user` is null for pods without a known user. */
export interface UserUse {
  user: string | null
  used: number
}

/** `message`: the source's message, unchanged, or `sentence` in English if Fairlead found the reason. `room`: for a pod that shares GPUs, the answers of all nodes; "" = one has room. `sentence`: Fairlead's reason; null if it knows no more than the source. `clauses`: the clauses of a message of quota; empty for other messages. */
export interface Waiting {
  reason: string
  message: string
  clauses: Array<Sentence>
  room: string
  sentence: Sentence | null
}

/** What is admitted all or nothing: a pod, a gang, a suspended job. `position`: in its leaf, from 1. `reason` is null where there is room: then only its gate is not open yet. `clauses`: those of `message`. `since`: since when it waits. `borrowers`: the ten who borrow most. */
export interface WaitingUnit {
  unit: string
  namespace: string
  name: string
  pods: number
  leaf: string
  path: string
  position: number
  reason: string | null
  message: string
  clauses: Array<Sentence>
  user: string | null
  since: string | null
  blocked: Array<QuotaNodeWithoutRoom>
  borrowers: Array<BorrowerRow>
  borrowersCount: number
  spared: Array<SparedPod>
}

/** What is missing in this answer, where it would come from, and what to do. `message` and `hint` are English. */
export interface Warning {
  code: string
  source: string
  message: string
  hint: string
  values: Record<string, string | number | null>
}
