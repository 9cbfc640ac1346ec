// The server's answers under the names the page uses. The shapes are generated (`tools/docs_typescript.py`); only what is generic stands here.
import type { JobCounts, MapNode, Sentence, Warning } from "./schema";

export type {
  AttentionLine,
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
  QuotaTreeRow,
  QuotaUsage as QuotaAnswer,
  QuotaWaitingList,
  RecentWarning,
  Sentence,
  ServingPod,
  ServingJob,
  ServingList,
  Sharing,
  TreeFault,
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

