"""What a process needs from its world, as Protocols that `edge/` or `fairlead_sim` implements.

`run/` chooses which. Worlds carry out and never decide: nothing here answers a question about the
cluster, it only delivers what is there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msgspec import Struct

from fairlead.model.access import Identity
from fairlead.model.actions import (
    Action,
    Manifest,
    ObjectAction,
    ObjectRef,
    Outcome,
    PatchObject,
)
from fairlead.model.changes import Observe
from fairlead.model.dependency import DependencyLooks
from fairlead.model.devices.device import DeviceSnapshot
from fairlead.model.devices.driver import (
    CardAnswer,
    CardFault,
    CgroupLimit,
    DriverXid,
    IsolationMeans,
    MpsLimit,
    ProcessHome,
    ProcessMemory,
)
from fairlead.model.devices.gpu import GpuReading, GpuSlot
from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import (
    CdiDevices,
    ClaimableCard,
    ContainerEdits,
    ContainerLimits,
    GivenShare,
    HeldDevices,
    OfferedDevice,
    Region,
)
from fairlead.model.devices.page_tally import PageTally
from fairlead.model.devices.series_names import LocalPod
from fairlead.model.event import Event
from fairlead.model.installed.component_facts import ComponentFacts, PlanFacts, WantedComponent
from fairlead.model.installed.facts import Unread
from fairlead.model.installed.planned_installation import PlannedInstallation
from fairlead.model.jobs.acceleration import AccelerationFacts, DataUser
from fairlead.model.jobs.data_details import DataReasons, DataSetFacts
from fairlead.model.jobs.datasets import FoundData
from fairlead.model.jobs.job import Job
from fairlead.model.jobs.serving import ServingObjects
from fairlead.model.operations.component import Component, ComponentRow
from fairlead.model.operations.operation import HelmRelease, HelmStep, Operation
from fairlead.model.people.actions import PeopleAction
from fairlead.model.people.external import ExternalIdentity, OidcRequest
from fairlead.model.people.record import Credential, PeopleRecord, ServerAddress
from fairlead.model.people.rows import User, UserGroup
from fairlead.model.people.token_bounds import BoundObject
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.records.audit import AuditFilter, AuditRow
from fairlead.model.records.rows import (
    CredentialRecord,
    OperationRow,
    OwnerKind,
    StoreFacts,
    StoreLook,
    TreeVersion,
    UsageOwner,
)
from fairlead.model.records.sign_ins import SignIn
from fairlead.model.refusal import Refusal
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.model.usage.ledger import (
    HeldHour,
    JobRecord,
    KeptState,
    LedgerBatch,
    LedgerBounds,
    LedgerClaim,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    StateKind,
)
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageSum


class Clock(Protocol):
    """Epoch seconds of the world.

    A simulated one runs at its own speed: never mix it with the machine's clock.
    """

    def now(self) -> float: ...


class Cluster(Protocol):
    """A cluster that keeps itself current while `run` runs."""

    async def run(self) -> None:
        """Follow the cluster until cancelled.

        Failures are kept in the snapshot's `sources`, retried with back-off, never raised.
        """
        ...

    @property
    def version(self) -> int:
        """Grows with every applied change.

        Equal versions mean equal snapshots (but for `taken_at` and source times).
        """
        ...

    @property
    def is_ready(self) -> bool:
        """Whether every source that exists has been read once.

        Before that a snapshot is incomplete: answer 503, never zeros.
        """
        ...

    def snapshot(self) -> ClusterSnapshot:
        """The newest state (without GPU readings).

        Cheap when nothing changed since the last call.
        """
        ...

    async def wait_changed(self, since: int, seconds: float) -> int:
        """The version once it differs from `since`, or the unchanged one after `seconds`."""
        ...

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        """Carry the action out, on this very object if it names a uid, and return how it ended.

        Failures are outcomes and never raised. `left`: returns the seconds for which this process
        may write, under a Lease. It is called right before each request; no request is sent when
        none are left, and the API server must decide within them.
        """
        ...


class GpuReadings(Protocol):
    """The newest device values of the cluster, kept current while `run` runs.

    They come from exporter pages, from Prometheus, or from nowhere.
    """

    async def run(self) -> None: ...

    def latest(self) -> tuple[GpuReading, ...]: ...

    def source(self) -> Source:
        """State of this input, as the source `gpu-telemetry`.

        `hint`: the addresses tried, and what to set.
        """
        ...

    def tally(self) -> PageTally | None:
        """Counts of the reading itself; None: nothing is read."""
        ...


class Devices(Protocol):
    """The GPUs that a GPU exporter reports (those of all nodes in the simulated world)."""

    async def run(self, on_snapshot: Callable[[], None]) -> None:
        """Ask the devices at a steady rate, until cancelled.

        `on_snapshot` is called after each new snapshot.

        A device or a driver that does not answer is part of the snapshot, and never raised.
        """
        ...

    def latest(self) -> DeviceSnapshot:
        """The last snapshot. Does not wait and asks no device."""
        ...

    def want(self, fields: frozenset[str]) -> None:
        """The DCGM fields that are printed from now on: expensive ones are read only then."""
        ...


class SeriesLine(Struct, frozen=True, gc=False):
    """One line of a chart: labels and (epoch seconds, value or None for a gap) points."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float | None], ...]


class Series(Protocol):
    """History for charts: Prometheus when configured, else the console's built-in history."""

    @property
    def name(self) -> str:
        """`prometheus` or `built-in`."""
        ...

    async def query_range(
        self, promql: str, start: float, end: float, step: float
    ) -> list[SeriesLine]:
        """Lines of the expression; raises OutsideError when the source does not answer."""
        ...


class ClockState(Struct, frozen=True):
    """A simulated world's time. `now` in epoch seconds; `speed` in simulated seconds per second.

    `since` and `until`: of the run to a later time that goes on, if any.
    """

    now: float
    speed: float
    is_paused: bool
    since: float | None = None
    until: float | None = None


class WorldWrite(Struct, frozen=True):
    """One write of a simulated world.

    `verb` is `added`, `modified` or `deleted`; `namespace` is empty for objects without one.
    """

    verb: str
    kind: str
    namespace: str
    name: str


class Timekeeper(Protocol):
    """Moves simulated time. The time of a real cluster cannot be moved."""

    def state(self) -> ClockState: ...

    @property
    def version(self) -> int:
        """Grows when time was moved by a client, and when a run ended; not as time goes by."""
        ...

    def pause(self) -> None:
        """Stop time; a run to a later time ends here.

        Reads, writes and streams of the API continue.
        """
        ...

    def resume(self) -> None: ...

    def set_speed(self, speed: float) -> None:
        """Raises UserError for an impossible speed."""
        ...

    def step(self) -> list[WorldWrite]:
        """Pause, go to the next instant at which something is written, and return those writes.

        Empty when nothing was written within a moment of the machine's work.
        """
        ...

    def run_until(self, at: float) -> None:
        """Begin to go to a later time as fast as the machine can.

        Raises UserError for a time that is not ahead, or too far.
        """
        ...


class LogRequest(Struct, frozen=True):
    """Which part of a container's log is wanted.

    `tail_lines`: number of the newest lines. `limit_bytes`: at most this number of bytes, from the
    oldest of them on; 0 = no limit.
    """

    container: str
    tail_lines: int
    previous: bool = False
    follow: bool = False
    limit_bytes: int = 0


class JobFiles(Protocol):
    """Details of a job that only the API server has, read on demand.

    `account`: the user that is impersonated, "" = the server's own rights. All raise Forbidden with
    the right that is missing, NotFound for what is gone, else OutsideError.
    """

    def log(
        self, namespace: str, pod: str, wish: LogRequest, account: str
    ) -> AsyncGenerator[bytes, None]:
        """The log's bytes as they come. Close the generator to end the request.

        It reads at most half a MiB ahead of what is taken from it.
        """
        ...

    async def may_read_logs(self, namespace: str, account: str) -> bool:
        """Whether the API server still lets the account read logs of this namespace."""
        ...

    async def manifest(self, job: Job, account: str) -> Manifest:
        """The job's object as it is now, with everything in it."""
        ...

    async def events(
        self, namespace: str, uids: Collection[str], account: str
    ) -> tuple[Event, ...]:
        """All events, of every type, that are kept of the
        objects of a namespace with these uids.
        """
        ...


class ServingQuestions(Protocol):
    """Details of serving jobs that only the API server has, read on demand."""

    async def read(self) -> ServingObjects:
        """The workloads and Services of all serving jobs, without their pods.

        Raises Forbidden with the right that is missing where Deployments may not be listed, else
        OutsideError. What else could not be read is in `sources`.
        """
        ...


class DataQuestions(Protocol):
    """Claims of volumes and data sets, read on demand (`cli.context.ClusterData` of a server). All
    raise OutsideError if the API server does not answer; what else cannot be read is in the answer.
    """

    async def read(self, namespace: str = "") -> FoundData:
        """`namespace`: "" = of all."""
        ...

    async def users(self, namespace: str) -> list[DataUser]:
        """Pods of the namespace that mount claims and have not ended."""
        ...

    async def facts(self, namespace: str, claim: str, name: str) -> AccelerationFacts:
        """What an acceleration of the claim under this name depends on.

        Raises OutsideError if claims or data sets of the namespace may not be read.
        """
        ...

    async def reasons(self, found: FoundData) -> DataReasons:
        """What explains why data sets of `found` do not begin or end; nothing is read if all do."""
        ...

    async def details(self, namespace: str, name: str) -> DataSetFacts:
        """All that is known of one data set."""
        ...

    async def leftovers(self, namespace: str, name: str) -> tuple[ObjectRef, ...]:
        """Volume, Secrets and pods that Fluid has made for a data set."""
        ...

    async def has_secret(self, namespace: str, name: str) -> bool | None:
        """Whether the Secret exists; None if it may not be read. Its values are not requested."""
        ...


class ComponentQuestions(Protocol):
    """The components of a cluster (docs/spec/components.md). Blocking: a server asks in threads.

    Raises OutsideError if the API server or Helm does not answer.
    """

    def facts(self, components: Sequence[Component]) -> ComponentFacts:
        """What there is of them; what may not be read is `Unread`."""
        ...

    def home(self) -> str:
        """The namespace of inventories and records."""
        ...

    def stand_in(self, id: str) -> tuple[Manifest, ...]:
        """What a simulated cluster deploys in place of a component's chart; () = nothing."""
        ...

    def render(self, step: HelmStep) -> tuple[Manifest, ...]:
        """The objects of a chart. Raises NoHelm without Helm."""
        ...

    def placed(self, manifests: Sequence[Manifest], namespace: str) -> tuple[Manifest, ...]:
        """The objects; those of a namespaced kind that name no namespace are in this one."""
        ...

    def found(self, targets: Sequence[ObjectRef]) -> list[Manifest | None]:
        """As they are; None = it does not exist, or its kind is not served."""
        ...

    def plan_facts(self, wanted: WantedComponent) -> PlanFacts:
        """What a plan is made from; nothing is written."""
        ...

    def links(self, row: ComponentRow, objects: Sequence[ObjectRef]) -> tuple[str, ...] | Unread:
        """Addresses of the component's pages, by its Ingresses. `objects`: of its inventory."""
        ...

    def sharing_pods(self) -> tuple[str, ...] | Unread:
        """Titles of pods that are on a node, have not ended, and ask for a part of a GPU."""
        ...


class InstallationPlans(Protocol):
    """Plans of Fairlead's own installation. Blocking: a server asks in threads.

    Raises OutsideError if the API server does not answer.
    """

    def plan(self, parts: Mapping[str, bool], values: Mapping[str, Any]) -> PlannedInstallation:
        """What an upgrade of the installation would write: with these parts (fields of `Parts`) on
        or off, and these values in the place of its own. Raises UserError for what the installer
        refuses, and without an installation.
        """
        ...

    def console_secret(self) -> ObjectRef:
        """The Secret in which the installation's console finds passwords. Raises UserError without
        an installation.
        """
        ...


class StoreQuestions(Protocol):
    """Databases that a console could use."""

    async def look(self, url: str, password: str) -> StoreLook:
        """Connects to the database and writes nothing. The answer never has the password."""
        ...


class Dependencies(Protocol):
    """The servers behind the cluster and its series, asked on demand for their health."""

    async def look(self) -> DependencyLooks:
        """Ask each server once.

        A server that does not answer is part of the result, not an exception.
        """
        ...


class ClusterWrites(Protocol):
    """The API server, for what pages write.

    `account`: the user that is impersonated, "" = the server's own rights. All raise
    OutsideError: Forbidden and NotFound as the API server answers, ChangedMeanwhile if the object
    is not as the action expects.
    """

    async def read(self, target: ObjectRef, account: str = "") -> Manifest:
        """The object as it is now."""
        ...

    async def write(self, action: ObjectAction, account: str = "") -> Manifest | None:
        """The object after the action, if the API server returns it.

        Raises AlreadyExists if an object to create is there, InvalidObject for refused values.
        """
        ...

    async def served(self, group: str, plural: str) -> tuple[str, ...]:
        """The versions of a resource that the cluster serves now; () = none."""
        ...

    async def spec_fields(self, api_version: str, kind: str) -> frozenset[str] | None:
        """The fields in `spec` of a served kind; None = unknown."""
        ...


class SignInApi(Protocol):
    """The API server, for a console at which users sign in.

    All raise OutsideError if it cannot be asked.
    """

    async def follow(self, observe: Observe) -> None:
        """Follow users and groups, until cancelled. What is not served counts as empty."""
        ...

    async def owner_of(self, token: str) -> Identity | Refusal:
        """The user to which the token belongs, or why the API server does not accept it."""
        ...

    async def is_there(self, bound: BoundObject) -> bool:
        """Whether the object still exists; True if the process may not know."""
        ...

    async def own_identity(self) -> Identity:
        """The user that this process is."""
        ...

    async def may_make_users(self, identity: Identity) -> bool:
        """Whether this user may update users."""
        ...

    async def keys(self, namespace: str, name: str) -> tuple[bytes, ...]:
        """The keys of cookies in this Secret, which is made where it is missing.

        Raises UserError for one that is too short.
        """
        ...


class CredentialIssuer(Protocol):
    """Issues tokens of users. All raise OutsideError if the API server refuses."""

    async def issue(
        self, user: str, seconds: int, note: str, issued_by: str
    ) -> tuple[Credential, str]:
        """A new token with its record, bound to a Secret. Nothing is left if none is issued."""
        ...

    async def address(self) -> ServerAddress:
        """Where users reach the API server. Raises UserError if that is not known."""
        ...

    async def revoke(self, credential: Credential) -> None: ...


class People(CredentialIssuer, Protocol):
    """Users, groups and credentials of the cluster, read and written with the rights of this
    process.

    All raise OutsideError if the API server cannot be asked or refuses, UserError where it does not
    serve users.
    """

    async def read(self) -> PeopleRecord:
        """All users and groups as they are now, and what users have made."""
        ...

    async def create_user(self, user: User) -> None: ...

    async def change_user(self, before: User, after: User) -> None:
        """Raises ChangedMeanwhile if the user was changed since `before` was read."""
        ...

    async def delete_user(self, user: User, *, is_forced: bool) -> None: ...

    async def create_group(self, group: UserGroup) -> None: ...

    async def change_group(self, before: UserGroup, after: UserGroup) -> None:
        """Raises ChangedMeanwhile if the group was changed since `before` was read."""
        ...

    async def delete_group(self, group: UserGroup) -> None: ...

    async def credentials(self, user: str = "") -> list[Credential]:
        """Those that were not revoked, of one user or ("") all, the newest first."""
        ...

    async def revoke_all(self, user: str) -> int:
        """Revoke every token of the user; returns how many credentials were recorded."""
        ...


class OidcProvider(Protocol):
    """An OpenID Connect provider.

    All raise OutsideError if it cannot be asked, TimeoutError if it does not answer in time.
    """

    async def sign_in_address(self, asked: OidcRequest) -> str:
        """Where a browser goes to sign in."""
        ...

    async def identity_of(self, code: str, asked: OidcRequest) -> ExternalIdentity | Refusal:
        """The user that the provider gave this code for, or why the answer is not accepted."""
        ...


class Ports(Struct, frozen=True):
    """Everything that a process may ask of its world.

    `series` is None when no Prometheus is configured, `timekeeper` where time is real, `job_files`,
    `servings`, `data`, `dependencies`, `sign_in`, `writes`, `people`, `operations` and
    `operated` (the objects that operations work on) and `components` in a saved snapshot, which has
    no API server, `helm` where there is no program of that name. `stores`: databases to check.
    `installation`: plans of Fairlead's own.
    `components` makes a new one for each use, because it remembers which kinds are served.
    """

    cluster: Cluster
    gpus: GpuReadings
    clock: Clock
    series: Series | None = None
    is_simulated: bool = False
    name: str = "kubernetes"
    timekeeper: Timekeeper | None = None
    job_files: JobFiles | None = None
    servings: ServingQuestions | None = None
    data: DataQuestions | None = None
    dependencies: Dependencies | None = None
    sign_in: SignInApi | None = None
    writes: ClusterWrites | None = None
    people: People | None = None
    operations: OperationRecords | None = None
    operated: OperationCluster | None = None
    helm: Helm | None = None
    components: Callable[[], ComponentQuestions] | None = None
    stores: StoreQuestions | None = None
    installation: InstallationPlans | None = None


# --- what the scheduler extender asks of a cluster ------------------------------------------------


class LeaseRecord(Struct, frozen=True):
    """The holder of a Lease, the process that may write.

    `renewed`: an opaque text that changes with each renewal ("" in a write = renew it now).
    `version`: what a write must be based on ("" = there is no lease yet). `wanted_by`: the extender
    that kube-scheduler calls, and that asks the holder for the lease.
    """

    holder: str = ""
    seconds: int = 0
    renewed: str = ""
    wanted_by: str = ""
    transitions: int = 0
    version: str = ""


class LeaseApi(Protocol):
    """One Lease. Both calls raise OutsideError if it was not written, or if that is unknown."""

    async def get_lease(self) -> LeaseRecord | None: ...

    async def put_lease(self, record: LeaseRecord) -> LeaseRecord | None:
        """The record as written, now; None if another process was faster."""
        ...


class WorkLease(Protocol):
    """The Lease of operations, for a command that writes the same objects. Blocking."""

    @property
    def target(self) -> ObjectRef: ...

    def hold(self) -> AbstractContextManager[Callable[[], None]]:
        """No operation of its subject runs inside the block; one that a dead process left, or that
        begins meanwhile, is ended.

        The value of the block raises UserError if the Lease was lost. Raises UserError if another
        process has it, OutsideError if the API server does not answer.
        """
        ...


class OperationRecords(Protocol):
    """The records of operations, in the cluster (docs/spec/operations.md#record).

    All raise OutsideError if the API server does not answer or refuses.
    """

    async def create(self, operation: Operation) -> Operation:
        """With its version. Raises AlreadyExists for a known id."""
        ...

    async def get(self, id: str) -> Operation | None: ...

    async def list(self) -> tuple[Operation, ...]:
        """All that can be parsed, the newest first; others are logged."""
        ...

    async def save(self, operation: Operation) -> Operation:
        """Raises ChangedMeanwhile if the record is not at `operation.version` any more."""
        ...

    async def remove(self, id: str) -> None: ...

    def lease(self, subject: str) -> LeaseApi: ...


class OperationCluster(Protocol):
    """The objects on which steps work. All raise OutsideError as the API server answers."""

    async def get(self, target: ObjectRef) -> Manifest | None:
        """None if it does not exist, or if its kind is not served."""
        ...

    async def create(self, manifest: Manifest, plural: str = "") -> Manifest:
        """Raises AlreadyExists."""
        ...

    async def apply(
        self, manifest: Manifest, plural: str = "", *, is_forced: bool = False, manager: str = ""
    ) -> Manifest:
        """By server-side apply; `manager`: as in `ApplyStep`. Raises ChangedMeanwhile with the
        fields of other managers.
        """
        ...

    async def remove(self, target: ObjectRef) -> None:
        """With a `uid` only that object. One that does not exist is right."""
        ...

    async def pods_of(self, target: ObjectRef) -> tuple[Manifest, ...]:
        """The pods of a workload, by its selector; () for other kinds."""
        ...

    async def newest_warning(self, target: ObjectRef) -> str:
        """The message of the newest Event of type Warning about the object; "" = none."""
        ...


class Helm(Protocol):
    """Helm's releases. Raises UserError where there is no `helm`, OutsideError if it fails."""

    async def release(self, name: str, namespace: str) -> HelmRelease | None: ...

    async def releases(self) -> tuple[HelmRelease, ...]:
        """Of all namespaces that may be read."""
        ...

    async def render(self, step: HelmStep) -> tuple[Manifest, ...]:
        """The objects that the chart makes with these values; nothing is written."""
        ...

    async def carry_out(self, step: HelmStep, operation: str) -> None:
        """Run it to its end; the revision's description names the operation."""
        ...


class SharingApi(LeaseApi, Protocol):
    """The API server, for the extender."""

    async def follow(self, observe: Observe, is_known: Callable[[str], bool]) -> None:
        """List nodes, pods and withheld cards anew, then watch them until cancelled.

        Withheld cards that may not be read count as none. Changes of a pod that does not name a
        shared GPU are reported only if the pod `is_known` by its uid.
        """
        ...

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        """See `Cluster.apply`."""
        ...

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """Raises OutsideError when the API server cannot be asked."""
        ...


# --- what the quota controller asks of a cluster --------------------------------------------------


class QuotaApi(LeaseApi, Protocol):
    """The API server, for the quota controller."""

    @property
    def workload_kinds(self) -> Collection[str]:
        """The kinds of workloads that `follow` reports, by their names in `Changes`."""
        ...

    async def follow(self, observe: Observe) -> None:
        """List everything anew, then watch it until cancelled.

        Workloads, budgets and the tree that are not served or may not be read count as empty. The
        tree's CRD may come and go.
        """
        ...

    async def apply(self, action: Action, left: Callable[[], float] | None = None) -> Outcome:
        """See `Cluster.apply`."""
        ...


class PeopleApi(LeaseApi, Protocol):
    """The API server, for the people controller."""

    @property
    def work_kinds(self) -> Collection[str]:
        """The kinds of pods and jobs that `follow` reports, by their names in `Changes`."""
        ...

    async def follow(self, observe: Observe) -> None:
        """List everything anew, then watch it until cancelled.

        Only jobs count as empty where they are not served or may not be read. Any other kind that
        cannot be read is not reported, so that nothing is decided without it.
        """
        ...

    async def apply(self, action: PeopleAction, left: Callable[[], float] | None = None) -> Outcome:
        """See `Cluster.apply`."""
        ...


class AdmissionApi(Protocol):
    """The API server, for the admission webhook.

    Every call raises OutsideError when there is no answer.
    """

    async def get_namespace(self, name: str) -> Namespace | None: ...

    async def get_tree(self) -> QuotaTree | None:
        """The one tree of a cluster."""
        ...

    async def list_users(self) -> Sequence[User]: ...

    async def list_groups(self) -> Sequence[UserGroup]: ...

    async def list_namespaces(self) -> Sequence[str]: ...

    async def list_pods(self, namespace: str) -> Sequence[Pod]:
        """Pods in phase Running."""
        ...

    async def list_unfinished_pods(self) -> Sequence[Pod]:
        """Unfinished pods of all namespaces."""
        ...

    async def get(self, target: ObjectRef) -> Manifest | None:
        """An object as it is, None where there is none."""
        ...

    async def apply(self, action: Action) -> Outcome:
        """See `Cluster.apply`."""
        ...


class Streams(Protocol):
    """This side of a program that runs elsewhere.

    `stdin` and `resized` are file descriptors; without a terminal `resized` is -1.
    """

    stdin: int
    resized: int

    @property
    def is_terminal(self) -> bool:
        """Whether stdin is a terminal, and the program therefore gets one, too."""
        ...

    def size(self) -> tuple[int, int]:
        """Columns and rows.

        `resized` can be read from when they have changed since this was asked.
        """
        ...

    def raw(self) -> AbstractContextManager[None]:
        """Inside the context every key goes to the program, Ctrl-C too.

        Without a terminal it does nothing.
        """
        ...

    def write(self, data: bytes) -> None: ...

    def write_error(self, data: bytes) -> None: ...


# --- what a node's GPU agent answers its kubelet --------------------------------------------------


class DeviceAnswers(Protocol):
    """Decides about devices, for the server of one resource.

    The kubelet receives an OutsideError of either call as `UNAVAILABLE`, with its text.
    """

    def registered(self) -> None:
        """The kubelet has just taken the resource, for the first time or again."""
        ...

    def preferred(
        self, available: Sequence[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        """The ids that the kubelet should prefer for a container."""
        ...

    async def allocate(self, ids: Sequence[str]) -> ContainerEdits | CdiDevices | DeviceRefusal:
        """What the container with these ids gets. The kubelet has not named the container yet.

        A refusal is final: the pod fails.
        """
        ...

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        """The container with these ids is about to be created, for the first time or again.

        A refused container is tried again. The call is cancelled, at any point, if the kubelet
        waits no longer (30 s) or ends: the next call starts from the beginning.
        """
        ...


class CardDriver(Protocol):
    """The GPUs of this node, as their driver shows them.

    Every call may take long, so it is made in a thread, one at a time. It raises OutsideError while
    there is no driver; the next call looks for one again.
    """

    def cards(self) -> Sequence[GpuSlot]:
        """All cards by index: uuid, minor, model, memory for containers; no units, no health."""
        ...

    def xids(self) -> Sequence[DriverXid]:
        """XIDs that were reported since the last call, in order. Does not wait.

        They are returned even if the driver has gone since.
        """
        ...

    def probe(self, uuid: str) -> CardAnswer:
        """Asks the card for its state."""
        ...

    def processes(self) -> Sequence[ProcessMemory]:
        """Processes that use memory now, without those for which the driver reports no amount."""
        ...

    def means(self) -> IsolationMeans:
        """The node's means to isolate containers on one card."""
        ...

    def cgroup_limit(self, uuid: str, cgroup: str) -> CgroupLimit:
        """What the driver allows a cgroup of the node; `cgroup`: its path below the root."""
        ...

    def bound_mps(self, limits: Sequence[MpsLimit]) -> str:
        """Only clients of MPS use these cards, each with at most this memory; other cards are free
        again for all programs.

        Why not; "" = done.
        """
        ...


class ResourceServer(Protocol):
    """One resource of this node, served to its kubelet."""

    @property
    def is_watched(self) -> bool:
        """Whether a kubelet knows these devices now, and receives changes."""
        ...

    @property
    def trouble(self) -> str:
        """Why no kubelet has accepted the resource; "" once one has."""
        ...

    def offer(self, devices: Iterable[OfferedDevice]) -> None:
        """All devices from now on."""
        ...

    async def run(self) -> None:
        """Serve, and stay registered, until cancelled."""
        ...


class KubeletHolders(Protocol):
    """The kubelet's record of which containers hold devices."""

    async def list_held(self) -> tuple[HeldDevices, ...]:
        """Its list of pod resources and its checkpoint together.

        Raises OutsideError when neither can be read.
        """
        ...


class ClaimableCards(Protocol):
    """Cards of a node that resource claims can name."""

    async def run(self) -> None: ...

    def latest(self) -> Mapping[tuple[str, str, str], ClaimableCard]:
        """By driver, pool and device."""


class PodIdentities(Protocol):
    """Labels, UIDs and containers of a node's pods."""

    async def run(self, news: Callable[[], None]) -> None:
        """Until cancelled, call `news` when they may have changed."""

    def latest(self) -> Mapping[tuple[str, str], LocalPod]:
        """By namespace and name."""


class TextSource(Protocol):
    """A text that another program keeps, and may change or remove."""

    async def read_text(self) -> str | None:
        """The current text, None if there is none. Raises OutsideError."""


class GivenFile(Protocol):
    """What a node's agent has given to containers, from its grants file."""

    def read_given(self) -> tuple[GivenShare, ...] | Refusal: ...


class GuardFiles(Protocol):
    """What the memory guard counts in the containers of this node."""

    def read_guard(self, token: str) -> tuple[ContainerLimits, Region] | Refusal | None:
        """The container's limits, and its region; None = the guard is not in it.

        `token`: of its device ids. A program of the container can write anything into the region.
        """
        ...


class AgentFiles(GivenFile, Protocol):
    """What a node's agent keeps on its node. A token names a container's device ids.

    Every call may raise OutsideError: a disk that is full or may not be written.
    """

    def lock(self) -> bool:
        """Whether these files belong to this agent from now on.

        Another agent of this node may have them.
        """
        ...

    def unlock(self) -> None:
        """Let another agent have them."""
        ...

    def write_given(self, shares: Iterable[GivenShare]) -> None: ...

    def read_faults(self) -> tuple[CardFault, ...] | Refusal:
        """Faults of this boot; the machine's next boot resets every card."""
        ...

    def write_faults(self, faults: Iterable[CardFault]) -> None: ...

    def read_runtime(self, versions: str) -> bool | None:
        """Whether these versions of the container runtime support CDI; None = not tested yet."""
        ...

    def write_runtime(self, versions: str, does_cdi: bool) -> None: ...

    def install_guard(self, preload: str) -> Refusal | None:
        """Put the memory guard's library on the node, and beside it the file that preloads it, with
        the content `preload`.

        Why containers cannot have it; None = they can. Containers that have an older library keep
        it until they start again.
        """
        ...

    def guard_path(self) -> str: ...

    def preload_path(self) -> str: ...

    def limits_path(self, token: str) -> str: ...

    def region_path(self, token: str) -> str: ...

    def read_answer(self, token: str) -> ContainerLimits | None:
        """The answer that the kubelet received before the container was known; None = none."""
        ...

    def write_answer(self, token: str, limits: ContainerLimits | None) -> None:
        """Keep the answer to the kubelet, with limits that allow nothing yet.

        None = there is no answer.
        """
        ...

    def write_container(
        self,
        token: str,
        limits: ContainerLimits,
        edits: ContainerEdits | None,
        region: Region | None = None,
    ) -> None:
        """The limits, a new region file, and what the runtime adds by CDI, unless that is None.

        `region` None: the file is empty. Processes that have the old file keep it.
        """
        ...

    def read_limits(self, token: str) -> ContainerLimits | Refusal | None:
        """What the container's own file allows it; None = there is none."""
        ...

    def write_cdi(self, token: str, edits: ContainerEdits) -> None: ...

    def tokens(self) -> frozenset[str]:
        """Tokens that have files."""
        ...

    def remove(self, token: str) -> None: ...

    def plugin_sockets(self) -> tuple[str, ...]:
        """Names of the sockets in the kubelet's plugin directory on which a program listens."""
        ...


class ProcessHomes(Protocol):
    """Where the processes of this node run."""

    def homes(self, pids: Collection[int]) -> Mapping[int, ProcessHome]:
        """By pid; a process that has ended meanwhile is left out."""
        ...


class NodeApi(Protocol):
    """The API server, for the agent of one node."""

    async def follow(self, observe: Observe) -> None:
        """Follow this node, its pods, and what an operator took out, until cancelled."""
        ...

    async def apply(self, action: Action) -> Outcome:
        """See `Cluster.apply`."""
        ...

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        """Raises OutsideError when the API server cannot be asked."""
        ...


class InstallationTarget(Protocol):
    """A cluster as the installer sees it.

    Calls block; a refused or broken one raises OutsideError.
    """

    def server_version(self) -> tuple[int, int] | None:
        """Major and minor version of the API server; None if it does not show them."""
        ...

    def is_simulated(self) -> bool:
        """Whether containers of the cluster run no program, as on the laptop."""
        ...

    def unserved(self, targets: Iterable[ObjectRef]) -> list[ObjectRef]:
        """Those whose kind the cluster does not serve."""
        ...

    def get(self, target: ObjectRef) -> Manifest | None:
        """None if it does not exist."""
        ...

    def try_objects(
        self, manifests: Sequence[Manifest], *, is_forced: bool = False
    ) -> list[Manifest | Exception]:
        """For each object what applying it would give, or the failure; writes nothing."""
        ...

    def may_write(self, targets: Sequence[ObjectRef]) -> list[ObjectRef]:
        """Objects that this user may not write: the first of each resource and namespace."""
        ...

    def may_patch(self, targets: Sequence[ObjectRef], subresource: str = "") -> list[ObjectRef]:
        """Objects that this user may not patch: the first of each resource and namespace."""
        ...

    def written(self, targets: Iterable[ObjectRef]) -> list[ObjectRef]:
        """Those that exist and that `put` has written."""
        ...

    def list_objects(self, kind: ObjectRef) -> list[Manifest]:
        """All objects of the kind, in all namespaces; none if the cluster does not serve it."""
        ...

    def ending_objects(self, namespace: str) -> list[Manifest]:
        """Objects of all kinds in the namespace that are being deleted."""
        ...

    def put(self, manifest: Manifest, *, is_forced: bool = False) -> Manifest:
        """Server-side apply; an object that is so already is not written."""
        ...

    def try_remove(self, targets: Sequence[ObjectRef]) -> list[Exception | None]:
        """For each object the failure that deleting it would give; deletes nothing."""
        ...

    def remove(self, target: ObjectRef, *, is_foreground: bool = False) -> bool:
        """Delete it and, in the background, what it owns; False if it does not exist.

        `is_foreground`: the object stays until what it owns is gone.
        """
        ...

    def change(self, action: PatchObject) -> Refusal | None:
        """Patch the object.

        The API server's refusal may hold for a moment only; None = done, or the object does not
        exist.
        """
        ...

    def installation_namespaces(self) -> list[Manifest]:
        """Namespaces with the label of an installation (`model/installation`)."""
        ...

    def inventory(self, first: str) -> Manifest | None:
        """The inventory of the cluster's installation, in whatever namespace with the label of an
        installation; `first` is looked at first. None without one. Raises UserError if there are
        several.
        """
        ...

    def release(self, first: str, chart: str) -> Manifest | None:
        """The record of the chart's release in this cluster, in whatever namespace that has the
        label of an installation, or that a labelled one names as its release's; `first` is looked
        at first. None without one.
        """
        ...

    def helm_releases(self, first: str, chart: str) -> list[str]:
        """The name in that record; none without one."""
        ...

    def gated_pods(self, gate: str) -> list[ObjectRef]:
        """Pods of all namespaces that wait at this scheduling gate."""
        ...

    def unscheduled_pods(self, scheduler: str) -> list[ObjectRef]:
        """Pods of all namespaces that name this scheduler and have no node."""
        ...

    def open_gate(self, pod: ObjectRef, gate: str) -> Refusal | None:
        """Remove the gate from the pod, as `change`."""
        ...


class SignIns(Protocol):
    """Users who are signed in, alike for every replica of the console.

    Times are milliseconds UTC. Methods of all parts of a store raise StoreDown when it cannot be
    reached.
    """

    async def add_sign_in(self, sign_in: SignIn) -> None: ...

    async def sign_in(self, hash: str) -> SignIn | None:
        """None if there is none. It may have expired: the caller compares `ends_at` and `seen_at`
        with its clock.
        """
        ...

    async def touch_sign_in(self, hash: str, seen_at: int) -> None:
        """Set `seen_at`, never to an earlier time."""
        ...

    async def end_sign_in(self, hash: str) -> bool:
        """False if there is none."""
        ...

    async def end_sign_ins(self, *, user: str = "", identity: str = "") -> int:
        """End all of the user, or all of the identity; how many there were."""
        ...

    async def expire_sign_ins(self, now: int, seen_before: int) -> int:
        """Remove those that ended before `now`, those last seen before `seen_before`, and spent
        keys that ended before `now`; how many sign-ins there were.
        """
        ...

    async def spend(self, hash: str, ends_at: int) -> bool:
        """Whether this is the first use of the key, in all replicas, until `ends_at`."""
        ...


class AuditTrail(Protocol):
    """Rows of the audit. No method changes or removes a row, but for `forget_audit`."""

    async def append_audit(self, row: AuditRow) -> int:
        """Store the row and return its id. When it returns, the row is on disk."""
        ...

    async def audit_page(
        self, filter: AuditFilter, size: int, before: int = 0
    ) -> tuple[AuditRow, ...]:
        """At most `size` rows, newest first; with `before` those with smaller ids.

        Rows `begun` that have a second row are left out.
        """
        ...

    async def count_audit(self, filter: AuditFilter) -> int:
        """How many rows all pages of this filter have."""
        ...

    def audit_rows(self, filter: AuditFilter) -> AsyncGenerator[AuditRow]:
        """The rows of all pages, oldest first, read in parts."""
        ...

    async def forget_audit(self, before: int) -> int:
        """Remove rows from before this time, which are past their retention; how many."""
        ...


class TreeVersions(Protocol):
    """The last versions of the quota tree."""

    async def add_tree_version(self, version: TreeVersion) -> int:
        """Store it, return its id, and remove all but the newest `KEPT_TREE_VERSIONS`."""
        ...

    async def tree_versions(self) -> tuple[TreeVersion, ...]:
        """Newest first."""
        ...


class CredentialRecords(Protocol):
    """The credentials that were issued, without their tokens."""

    async def add_credential(self, credential: CredentialRecord) -> None: ...

    async def credentials(self, user: str = "") -> tuple[CredentialRecord, ...]:
        """Of the user, or of all users; newest first."""
        ...

    async def revoke_credentials(self, at: int, *, name: str = "", user: str = "") -> int:
        """Mark one as revoked, or all of a user; how many were not revoked before."""
        ...


class IssuedRecords(AuditTrail, CredentialRecords, Protocol):
    """What is kept when a credential is issued."""


class OperationHistory(Protocol):
    """Operations that have ended. Times are milliseconds UTC."""

    async def keep_operation(self, row: OperationRow) -> None:
        """Store the row; one of the same id, which was resumed since, is replaced."""
        ...

    async def operation_rows(
        self, size: int, before: tuple[int, str] | None = None
    ) -> tuple[OperationRow, ...]:
        """At most `size` rows, the newest first; with `before` those that began before this time
        and id.
        """
        ...

    async def kept_operation(self, id: str) -> OperationRow | None: ...

    async def forget_operations(self, before: int) -> int:
        """Remove those that ended before this time; how many there were."""
        ...


class Owners(Protocol):
    """Namespaces, users and leaves as rows."""

    async def owner_id(self, kind: OwnerKind, name: str) -> int:
        """The id; the owner is stored if it is new."""
        ...

    async def owners(self, kind: OwnerKind) -> tuple[UsageOwner, ...]:
        """All of this kind, by id."""
        ...


class LedgerWriting(Protocol):
    """The ledger, as the usage recorder writes it (docs/spec/usage.md#recorder)."""

    async def claim_ledger(self, holder: str, now: int, zone: str = "UTC") -> LedgerClaim:
        """Make this recorder the newest one, and return what is open.

        From the heartbeat to `now` is stored as a gap. `zone`: of billing days; the first claim
        stores it, and a claim with another one raises UserError, because folded days stay as they
        are.
        """
        ...

    async def write_ledger(self, epoch: int, batch: LedgerBatch) -> None:
        """Store all of the batch in one transaction. Raises LedgerTaken if `epoch` is not the
        newest claim.
        """
        ...

    async def fold_day(self, epoch: int, day: int, end: int) -> None:
        """Replace the rows of the billing day from `day` to `end` by the sums of its intervals.
        Raises LedgerTaken.
        """
        ...

    async def forget_ledger(self, epoch: int, records_before: int, days_before: int) -> int:
        """Remove records that ended before the first time, with the hours of intervals, and days,
        gaps and deleted jobs before the second; how many rows there were. Raises LedgerTaken.
        """
        ...


class PriceRecords(Protocol):
    """Prices. No method changes or removes one."""

    async def add_price(self, price: Price) -> int:
        """Store it and return its id."""
        ...

    async def prices(self) -> tuple[Price, ...]:
        """All, in the order of their ids."""
        ...


class LedgerReading(PriceRecords, Protocol):
    """What is asked of the ledger. Times are milliseconds UTC, `start` included, `end` excluded.

    `namespaces`: only these; None = all.
    """

    async def ledger_bounds(self) -> LedgerBounds: ...

    async def usage_days(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[UsageSum, ...]:
        """The folded days that begin in this time, sorted by day, owner, job and class."""
        ...

    async def usage_sums(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[UsageSum, ...]:
        """The same sums of the intervals and hours of this time, cut at its ends; `day` is
        `start`. Hours count if they begin in it. Open intervals count until the heartbeat.

        Raises UserError for a time of more than two years.
        """
        ...

    async def node_days(self, start: int, end: int) -> tuple[NodeSum, ...]:
        """Of nodes, the folded days that begin in this time."""
        ...

    async def node_sums(self, start: int, end: int) -> tuple[NodeSum, ...]:
        """Of nodes, the same sums of the intervals and hours of this time."""
        ...

    async def pod_intervals(
        self,
        start: int,
        end: int,
        namespaces: Collection[str] | None = None,
        job_uid: str = "",
        pod_uids: Collection[str] | None = None,
    ) -> tuple[PodInterval, ...]:
        """Those that touch this time, by `started_at` and uid; of one job if it is named, of these
        pods if `pod_uids` is given.
        """
        ...

    async def node_intervals(self, start: int, end: int) -> tuple[NodeInterval, ...]: ...

    async def pod_hours(self, start: int, end: int) -> tuple[PodHour, ...]:
        """Those that begin in this time, by hour, uid and `started_at`."""
        ...

    async def idle_hours(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[PodHour, ...]:
        """Those of `pod_hours` whose pods have a row in the last hour of this time that is idle in
        part, or not known to be busy.
        """
        ...

    async def held_hours(self, start: int, end: int) -> tuple[HeldHour, ...]:
        """The sums of `pod_hours` by hour, node and price class, in this order."""
        ...

    async def node_hours(self, start: int, end: int) -> tuple[NodeHour, ...]: ...

    async def states_at(
        self, at: int, kinds: Collection[StateKind], namespaces: Collection[str] | None = None
    ) -> tuple[KeptState, ...]:
        """The states that are valid at this time, by kind, namespace, name, uid and start. Those
        without a namespace, as nodes and trees, are returned whatever `namespaces` is.
        """
        ...

    async def states_begun(
        self, start: int, end: int, kinds: Collection[StateKind]
    ) -> tuple[KeptState, ...]:
        """The states that begin in this time, by `started_at`, kind and uid. With the states at
        `start` they are all that a replay of this time needs.
        """
        ...

    async def ledger_jobs(
        self,
        start: int,
        end: int,
        namespaces: Collection[str] | None = None,
        name: str = "",
    ) -> tuple[JobRecord, ...]:
        """Jobs that existed in this time, the newest first; of one name if it is given."""
        ...


class UsageLedger(LedgerWriting, LedgerReading, Protocol):
    """Both sides of the ledger; the store implements it."""


class Store(
    SignIns, AuditTrail, TreeVersions, CredentialRecords, OperationHistory, Owners, Protocol
):
    """What the console keeps, in SQLite, PostgreSQL or MySQL.

    A consumer asks for the part that it needs.
    """

    @property
    def ledger(self) -> UsageLedger: ...

    async def facts(self) -> StoreFacts:
        """Raises StoreDown: so it is also the check whether the store answers."""
        ...

    async def close(self) -> None:
        """End its connections. Calls that are under way end first."""
        ...
