// Which script draws a page? Each board is a script of its own: the first one is fetched while the rest of the page starts, the others when nothing else is to do.
import { lazy, type LazyExoticComponent } from "react";
import type { JobPage } from "../boards/jobs/JobPage";
import type { NodePage } from "../boards/nodes/NodePage";
import type { OperationPage } from "../boards/operations/OperationPage";
import { placeOf } from "./boards";

const LOADERS = {
  overview: () => import("../boards/overview/OverviewBoard").then((m) => ({ default: m.OverviewBoard })),
  mine: () => import("../boards/mine/MineBoard").then((m) => ({ default: m.MineBoard })),
  nodes: () => import("../boards/nodes/NodesBoard").then((m) => ({ default: m.NodesBoard })),
  node: () => import("../boards/nodes/NodePage").then((m) => ({ default: m.NodePage })),
  holders: () => import("../boards/holders/HoldersBoard").then((m) => ({ default: m.HoldersBoard })),
  devices: () => import("../boards/devices/DevicesBoard").then((m) => ({ default: m.DevicesBoard })),
  jobs: () => import("../boards/jobs/JobsBoard").then((m) => ({ default: m.JobsBoard })),
  job: () => import("../boards/jobs/JobPage").then((m) => ({ default: m.JobPage })),
  submit: () => import("../boards/submit/SubmitPage").then((m) => ({ default: m.SubmitPage })),
  serving: () => import("../boards/serving/ServingBoard").then((m) => ({ default: m.ServingBoard })),
  datasets: () => import("../boards/datasets/DatasetsBoard").then((m) => ({ default: m.DatasetsBoard })),
  components: () => import("../boards/components/ComponentsBoard").then((m) => ({ default: m.ComponentsBoard })),
  operations: () => import("../boards/operations/OperationsBoard").then((m) => ({ default: m.OperationsBoard })),
  operation: () => import("../boards/operations/OperationPage").then((m) => ({ default: m.OperationPage })),
  quota: () => import("../boards/quota/QuotaBoard").then((m) => ({ default: m.QuotaBoard })),
  usage: () => import("../boards/usage/UsageBoard").then((m) => ({ default: m.UsageBoard })),
  idle: () => import("../boards/idle/IdleBoard").then((m) => ({ default: m.IdleBoard })),
  "quota-tree": () => import("../boards/quota/TreePage").then((m) => ({ default: m.TreePage })),
  access: () => import("../boards/access/AccessPage").then((m) => ({ default: m.AccessPage })),
  users: () => import("../boards/people/UsersBoard").then((m) => ({ default: m.UsersBoard })),
  groups: () => import("../boards/people/GroupsBoard").then((m) => ({ default: m.GroupsBoard })),
  audit: () => import("../boards/people/AuditBoard").then((m) => ({ default: m.AuditBoard })),
  health: () => import("../boards/health/HealthBoard").then((m) => ({ default: m.HealthBoard })),
} as const;

export const Overview = lazy(LOADERS.overview);
export const Mine = lazy(LOADERS.mine);
export const Nodes = lazy(LOADERS.nodes);
export const Node: LazyExoticComponent<typeof NodePage> = lazy(LOADERS.node);
export const Holders = lazy(LOADERS.holders);
export const Devices = lazy(LOADERS.devices);
export const Jobs = lazy(LOADERS.jobs);
export const Job: LazyExoticComponent<typeof JobPage> = lazy(LOADERS.job);
export const Submit = lazy(LOADERS.submit);
export const Serving = lazy(LOADERS.serving);
export const Datasets = lazy(LOADERS.datasets);
export const Components = lazy(LOADERS.components);
export const Operations = lazy(LOADERS.operations);
export const Operation: LazyExoticComponent<typeof OperationPage> = lazy(LOADERS.operation);
export const Quota = lazy(LOADERS.quota);
export const Usage = lazy(LOADERS.usage);
export const Idle = lazy(LOADERS.idle);
export const Access = lazy(LOADERS.access);
export const Users = lazy(LOADERS.users);
export const Groups = lazy(LOADERS.groups);
export const Audit = lazy(LOADERS.audit);
export const Health = lazy(LOADERS.health);
export const QuotaTree = lazy(LOADERS["quota-tree"]);

const AHEAD_MS = 3000;

/** Fetch the script of the page at `path` at once, and all the others once the page has had time to draw. A fetch that fails is tried again when its page is opened. */
export function fetchAhead(path: string): void {
  const { board } = placeOf(path);
  const fetched = board === "none" ? Promise.resolve() : LOADERS[board]();
  const others = () => void Promise.allSettled(Object.values(LOADERS).map((load) => load()));
  void Promise.allSettled([fetched]).then(() => setTimeout(others, AHEAD_MS));
}
