// The server's answers under the names the page uses. The shapes are generated (`tools/docs_typescript.py`); only what is generic stands here.
import type { JobCounts, MapNode, Sentence, Warning } from "./schema";

export type {
  AttentionLine,
  AuditEntry,
  AuditPage,
  CredentialList,
  CredentialRow,
  Deleted,
  Effect,
  FieldFault,
  GroupList,
  GroupRow,
  IssuedKubeconfig,
  IssuedToken,
  Preview,
  UserList,
  UserRow,
  AttentionObject,
  BoundsChange,
  Chart as ChartAnswer,
  ClockFace,
  ClockMoved,
  ClockOrder,
  ChartLine as ChartSeries,
  ConditionRow as NodeCondition,
  Consumer,
  EventRow,
  Holder,
  HolderGroup,
  HolderGroupList,
  HolderList,
  GpuList,
  GpuMap as GpuMapAnswer,
  GpuPod,
  GpuRow,
  HealthPage,
  HealthRow,
  MigInstanceRow,
  Instance,
  InstanceList,
  InstanceLog,
  JobManifest,
  MyWork,
  MyWait,
  MyLeaf,
  Start,
  LifeStep,
  ListedGpu,
  JobDetail,
  JobList,
  JobRow,
  MapNode,
  Me,
  OwnKubeconfig,
  SignInMethods,
  NodeDetail,
  NodeList,
  NodePod,
  NodeRow,
  Overview,
  Pool,
  QuotaBounds,
  QuotaEffects,
  SearchAnswer,
  SearchHit,
  QuotaRow,
  QuotaTreePage,
  QuotaTreePreview,
  QuotaTreeRow,
  QuotaTreeVersion,
  QuotaTreeVersions,
  QuotaTreeWritten,
  QuotaUsage as QuotaAnswer,
  QuotaWaitingList,
  RecentWarning,
  Sentence,
  ServingPod,
  ServingJob,
  ServingList,
  Sharing,
  TreeFault,
  TreeNodeOrder,
  Waiting,
  WaitingUnit,
  Warning,
} from "./schema";

/** What every answer carries; boards also have their sentence. */
export interface Answer {
  readonly generatedAt: string;
  readonly stale: boolean;
  readonly version: string;
  readonly warnings: readonly Warning[];
  readonly sentence?: Sentence;
}

/** `[state, util %, memory used %, °C, idle seconds, holders]`; read in `gpumap/cells.ts`. */
export type MapGpu = MapNode[4][number];

export type JobState = keyof JobCounts;

