"""What a verb gets beside its own arguments.

The global options, where to print, the cluster and the machine that it talks to.

Verbs know neither `edge` nor the simulated cluster, and touch no file: they ask `context.world` and
`context.machine`. Named tuples instead of msgspec structs, because `arena version` is measured in
milliseconds and needs no decoder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from fairlead.cli.frame.messages import Messages

if TYPE_CHECKING:
    import argparse

    from fairlead.console.pages.clock import ClockFace, ClockMoved, ClockOrder
    from fairlead.kinds.parts.elastic_training import SshKeys
    from fairlead.kinds.parts.kind import CreatedKind, JobKind
    from fairlead.kinds.submission import Served
    from fairlead.model.actions import Manifest, ObjectAction, ObjectRef, Outcome
    from fairlead.model.devices.gpu_chip import LoadCard
    from fairlead.model.devices.gpu_load import LoadTest, WorkDone
    from fairlead.model.event import Event
    from fairlead.model.installation import Installation
    from fairlead.model.installed.component_facts import ComponentFacts, PlanFacts, WantedComponent
    from fairlead.model.installed.facts import InstallationFacts, Unread
    from fairlead.model.jobs.acceleration import AccelerationFacts, DataUser
    from fairlead.model.jobs.cron import Cron
    from fairlead.model.jobs.data_details import DataReasons, DataSetFacts
    from fairlead.model.jobs.datasets import FoundClaims, FoundData
    from fairlead.model.jobs.job import Job
    from fairlead.model.jobs.serving import FoundServings, Serving
    from fairlead.model.operations.component import Component, ComponentRow
    from fairlead.model.operations.operation import HelmStep, Operation
    from fairlead.model.people.record import Credential, KeptToken, PeopleRecord, ServerAddress
    from fairlead.model.people.rows import User, UserGroup
    from fairlead.model.quota.setup import BuiltInQuota, QuotaSetup
    from fairlead.model.records.rows import StoreCheck
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.ports import InstallationTarget, Streams, UsageLedger, WorkLease
    from fairlead.wire.files.offline_bundle import BundleReport
    from fairlead.wire.files.snapshot_file import SavedSnapshot
    from fairlead.wire.kube.exec_channels import ProgramEnd
    from fairlead.wire.kube.kept_objects import KeptObjects

Answer = TypeVar("Answer")


class GlobalOptions(NamedTuple):
    """The flags of every verb (docs/spec/arena-cli.md#global-flags); empty text = not given."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    arena_namespace: str = "arena-system"
    loglevel: str = "info"
    snapshot: str = ""


class ClusterReader(Protocol):
    """A cluster as reading verbs see it: a real one, a saved one,
    or the embedded simulated one. Blocking.
    """

    def read_nodes(
        self, names: Sequence[str] = (), *, with_readings: bool = False, with_withheld: bool = False
    ) -> ClusterSnapshot:
        """Nodes (all, or those of `names` that exist), the pods that hold something on them, and
        their GPU topologies.

        With `with_readings` also the GPUs' newest values; if they cannot be read, there are none,
        and `sources[GPU_TELEMETRY]` gives the reason. With `with_withheld` also the shared GPUs
        that an operator withheld, if they may be read. Nodes are read before pods: a pod may be
        missing, never its node.
        """
        ...

    def read_all(self, *, with_warnings: bool = True) -> ClusterSnapshot:
        """Everything the model knows: what `snapshot save` writes.

        `with_warnings`: what cannot be read is logged. It is in `sources`, too.
        """
        ...

    def read_namespace(self, namespace: str) -> ClusterSnapshot:
        """The pods, Events, jobs and owners of pods of one namespace, for a user without rights in
        others; neither nodes nor the quota tree.

        `sources` has what could not be read. Raises OutsideError if that is the pods (Forbidden, if
        the API server refuses them).
        """
        ...

    def read_objects(self) -> KeptObjects | None:
        """The objects from which a simulated cluster can continue, without secret parts; None if
        they are not known any more.
        """
        ...

    def describe(self) -> str:
        """Which cluster this is, in a few words for a person."""
        ...


class ClusterJobs(Protocol):
    """The training jobs of a cluster as the job verbs see them.

    Blocking; `namespace` "" means all.
    """

    def read_jobs(
        self,
        kinds: Sequence[JobKind],
        namespace: str,
        name: str = "",
        *,
        with_pods: bool = True,
        with_readings: bool = False,
    ) -> ClusterSnapshot:
        """The jobs of these kinds (with `name`: those called so) and, unless `with_pods` is False,
        their pods.

        `sources` contains the state of each kind. With `with_readings` also the values of the GPUs
        they hold; if those cannot be read, `sources[GPU_TELEMETRY]` gives the reason.
        """
        ...

    def read_events(self, uids: Sequence[tuple[str, str]]) -> list[tuple[Event, ...]]:
        """For each (namespace, uid) of an object its events, oldest first."""
        ...

    def delete(self, kind: JobKind, job: Job) -> bool:
        """Delete a job and, in the background, all that belongs
        to it; False if it does not exist.
        """
        ...

    def delete_left(self, kinds: Sequence[JobKind], namespace: str, name: str) -> list[str]:
        """Delete what Fairlead wrote for an absent job of these kinds;
        returns `configmap/NAME` of each.
        """
        ...

    def log(self, namespace: str, pod: str, options: Mapping[str, str | int]) -> Iterator[bytes]:
        """The log of a container in pieces; `options` are those of the API's `pods/log`."""
        ...

    def execute(
        self, namespace: str, pod: str, container: str, command: Sequence[str], streams: Streams
    ) -> ProgramEnd:
        """Run a command in a container to its end, with this process's streams as its own."""
        ...

    def service_url(self, namespace: str, service: str, host: str) -> str:
        """The public address of a Service: its load balancer, else its node port on `host`; "" if
        unknown.
        """
        ...

    def user(self) -> str:
        """The name of this command's user, as the cluster reports it."""
        ...

    def config(self, namespace: str, name: str) -> Mapping[str, str]:
        """The data of a ConfigMap; empty if there is none, or if it may not be read."""
        ...

    def is_absent(self, namespace: str) -> bool:
        """Whether the cluster reports the namespace as absent; False if it may not be read."""
        ...


class ClusterObjects(Protocol):
    """Objects of any kind, to create and to remove. Blocking."""

    def served(self, kind: CreatedKind, with_fields_of: str, priority: str) -> Served:
        """What must be known before a job is made; `with_fields_of` is the version whose schema is
        read, `priority` a priority class.

        Either may be empty. Raises OutsideError if discovery fails.
        """
        ...

    def submitter(self) -> str:
        """The name of this command's user; "" if unknown, which does not prevent submitting."""
        ...

    def create_unasked(self, kind: CreatedKind, manifest: Manifest, namespace: str) -> Outcome:
        """Create a job without discovery: half the requests if the guess is right.

        Raises RejectedObject if it is wrong: then nothing was created, and `served` returns what is
        possible.
        """
        ...

    def is_there(self, manifest: Manifest, namespace: str) -> bool:
        """Whether an object of this kind and name exists already."""
        ...

    def apply(self, action: ObjectAction) -> Outcome:
        """Carry it out and return the outcome, also of failures (see `ports.Cluster.apply`)."""
        ...


class ClusterServings(Protocol):
    """The serving jobs of a cluster, and its data. Blocking; `namespace` "" means all."""

    def read_servings(self, namespace: str, name: str = "", version: str = "") -> FoundServings:
        """All of them, or those of this name and version, with their pods.

        `sources` contains what could not be read.
        """
        ...

    def delete(self, serving: Serving) -> None:
        """Delete it with all that belongs to it; it may be deleted already."""
        ...

    def read_claims(self, namespace: str) -> FoundClaims: ...


class ClusterData(Protocol):
    """The data of a cluster: claims of volumes, and Fluid's data sets. Blocking."""

    def read(self, namespace: str) -> FoundData:
        """`namespace` "" means all. `sources` contains what could not be read."""
        ...

    def facts(self, namespace: str, claim: str, name: str) -> AccelerationFacts:
        """What must be known before the claim gets a data set of this name."""
        ...

    def has_secret(self, namespace: str, name: str) -> bool | None:
        """Whether the Secret exists; None if it may not be read. Its values are not requested."""
        ...

    def users(self, namespace: str) -> list[DataUser]:
        """Pods of the namespace that mount claims and have not ended."""
        ...

    def with_owners(self, users: Sequence[DataUser]) -> list[DataUser]:
        """The same, each with the job to which it belongs, or what else is at the top of its chain
        of owners, as far as this user may read it.
        """
        ...

    def reasons(self, found: FoundData) -> DataReasons:
        """What explains data sets that are stuck; asks nothing if none is."""
        ...

    def details(self, namespace: str, name: str) -> DataSetFacts:
        """All that is known of one data set of this name, which may be absent."""
        ...

    def leftovers(self, namespace: str, name: str) -> tuple[ObjectRef, ...]:
        """Volume, records of the Helm release and cache pods of a data set that exist and may be
        read.
        """
        ...

    def is_there(self, target: ObjectRef) -> bool:
        """Whether a data set, a runtime or a claim is there."""
        ...


class ClusterOperations(Protocol):
    """Operations of a cluster (docs/spec/operations.md). Blocking."""

    def now(self) -> float:
        """The cluster's time, in epoch seconds."""
        ...

    def list(self) -> tuple[Operation, ...]:
        """All records, the newest first."""
        ...

    def get(self, id: str) -> Operation | None: ...

    def start(
        self,
        operation: Operation,
        report: Callable[[Operation], object],
        *,
        leaves_waits: bool = False,
    ) -> Operation:
        """Record the plan and carry it out here, to its end, or with `leaves_waits` to the first
        step that waits. `report`: receives each state.

        A user who may not record it gets a warning, and the same steps.
        """
        ...

    def start_all(
        self, operations: Sequence[Operation], report: Callable[[Operation], object]
    ) -> tuple[Operation, ...]:
        """As `start`; each of them follows the one before it. All of them end."""
        ...

    def resume(
        self, id: str, report: Callable[[Operation], object], *, leaves_waits: bool = False
    ) -> Operation:
        """Go on with an operation that its process left, or that has failed, and before it with
        those that it follows.

        Raises UserError while another process is at work on it.
        """
        ...

    def cancel(self, id: str) -> Operation:
        """Ask the process at work to end it. Raises UserError if it has ended."""
        ...


class ClusterComponents(Protocol):
    """The components of a cluster (docs/spec/components.md). Blocking."""

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
        """The objects of a chart. Raises NoHelm without Helm, OutsideError if it fails."""
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
        """See `ports.ComponentQuestions`."""
        ...

    def sharing_pods(self) -> tuple[str, ...] | Unread:
        """See `ports.ComponentQuestions`."""
        ...


class ClusterCrons(Protocol):
    """The crons of a cluster. Blocking. Each raises UserError where the cluster serves none."""

    def read_crons(self, namespace: str) -> list[Cron]:
        """By namespace and name; `namespace` "" means all."""
        ...

    def get(self, namespace: str, name: str) -> Cron | None: ...

    def suspend(self, namespace: str, name: str, *, is_suspended: bool) -> bool:
        """False when there is no such cron."""
        ...

    def delete(self, namespace: str, name: str) -> bool:
        """Delete it and, in the background, the jobs that it made; False: no such cron."""
        ...


class ClusterPeople(Protocol):
    """The users and groups of a cluster. Blocking.

    Each raises UserError where the cluster does not serve them, OutsideError for other failures.
    """

    def read(self) -> PeopleRecord: ...

    def create_user(self, user: User) -> None: ...

    def create_group(self, group: UserGroup) -> None: ...

    def change_user(self, before: User, after: User) -> None:
        """Raises OutsideError if the user was changed since `before` was read."""
        ...

    def change_group(self, before: UserGroup, after: UserGroup) -> None:
        """Raises OutsideError if the group was changed since `before` was read."""
        ...

    def delete_user(self, user: User, *, is_forced: bool) -> None: ...

    def delete_group(self, group: UserGroup) -> None: ...

    def vendor_objects(self) -> list[Manifest]:
        """Users and groups that ACK's console keeps in the cluster."""
        ...

    def adopt_service_account(self, name: str) -> None:
        """Give the ServiceAccount of the users namespace to the user of its name.

        None of that name: nothing.
        """
        ...

    def issue(
        self, user: str, seconds: int, note: str, *, is_renewed: bool = False
    ) -> tuple[Credential, str]:
        """A new token for the user, with its record. `is_renewed`: the user may renew it."""
        ...

    def credentials(self, user: str = "") -> list[Credential]:
        """Those that were not revoked, of one user or ("") all, the newest first."""
        ...

    def revoke(self, credential: Credential) -> None: ...

    def revoke_all(self, user: str) -> int:
        """Revoke every token of the user; returns how many credentials were recorded."""
        ...

    def address(self, named: str) -> ServerAddress:
        """Where users reach the API server; `named`: its URL, "" = as this command reaches it."""
        ...


class ConsolePages(Protocol):
    """The API of a console. Blocking.

    Each raises UserError for a request that the console refuses, OutsideError if it does not
    answer.
    """

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """`path`: below `/api/v1`. `query`: empty values are left out."""
        ...

    def post(self, path: str, body: bytes) -> bytes: ...

    def delete(self, path: str) -> bytes: ...


class UsageStore(Protocol):
    """The usage ledger in a store. Blocking."""

    def ask(self, question: Callable[[UsageLedger], Awaitable[Answer]]) -> Answer:
        """The answer to a question. Raises StoreDown if the engine does not answer, UserError for
        a store of another schema.
        """
        ...


class LaptopTime(Protocol):
    """The clock of a running laptop.

    Blocking; `order` only starts a run to a later time, and `read` shows when it is over.
    """

    def read(self) -> ClockFace: ...

    def order(self, order: ClockOrder) -> ClockMoved: ...


class Clusters(Protocol):
    """What `main` hands to verbs: how to read a cluster, and how to start servers."""

    def reader(self) -> ClusterReader:
        """The cluster that options, environment and this machine's files select
        (`fairlead.run.worlds`).
        """
        ...

    def jobs(self) -> ClusterJobs:
        """The jobs of that same cluster."""
        ...

    def objects(self) -> ClusterObjects | None:
        """The objects of that cluster;
        None for a file or the embedded cluster, which keep no changes.
        """
        ...

    def servings(self) -> ClusterServings | None:
        """The serving jobs of that cluster; None for a file or the embedded one."""
        ...

    def data(self) -> ClusterData | None:
        """The data of that cluster; None for a file or the embedded one."""
        ...

    def operations(self, *, makes_namespace: bool = False) -> ClusterOperations | None:
        """The operations of that cluster; None for a file or the embedded one.

        `makes_namespace`: the first record creates its namespace; a laptop always does.
        """
        ...

    def components(self) -> ClusterComponents | None:
        """The components of that cluster; None for a file or the embedded one."""
        ...

    def quota_setup(self) -> QuotaSetup | BuiltInQuota | None:
        """The installation of quota in that cluster, or a laptop's built-in one; None for a file or
        the embedded cluster.
        """
        ...

    def installation_target(self) -> InstallationTarget | None:
        """That cluster, to install Fairlead into; None for a file or the embedded one."""
        ...

    def installation_lease(self, by: str, namespace: str = "") -> WorkLease | None:
        """The Lease of operations on the installation of that cluster; None for a file or the
        embedded one. `by`: the command. `namespace`: of the installation, "" = where it is.
        """
        ...

    def installation_facts(self, choose: Callable[[str], Installation]) -> InstallationFacts | None:
        """What is known of that cluster and its installation; None for a file or the embedded one.

        `choose` makes the values to examine from those of the inventory (YAML).
        """
        ...

    def crons(self) -> ClusterCrons | None:
        """The crons of that cluster; None for a file or the embedded one, which have none."""
        ...

    def people(self) -> ClusterPeople | None:
        """The users and groups of that cluster; None for a file or the embedded one."""
        ...

    def renew(self, cluster: Mapping[str, Any], token: KeptToken) -> KeptToken:
        """A new token of the same credential, from the API server that kubectl is about to ask.

        `cluster`: of KUBERNETES_EXEC_INFO. Raises UserError if the present token does not work any
        more, OutsideError if the API server cannot be reached, or refuses.
        """
        ...

    def namespace(self) -> str:
        """The namespace to work in: of the flag,
        else the config file, else the context, else `default`.
        """
        ...

    def console(self) -> str:
        """The address of the console that shows this cluster; "" if unknown."""
        ...

    def console_pages(self, named: str, ca_file: str) -> ConsolePages:
        """The console at `named`, "" = that of `console`, with the token of the kubeconfig.

        `ca_file`: PEM of the authority of its certificate, "" = those of this machine. Raises
        UserError if no address is known, or it is malformed.
        """
        ...

    def laptop_clock(self, state_dir: str) -> LaptopTime:
        """The clock of the laptop that keeps its files in `state_dir` (empty: the one that is named
        as a cluster, else the usual place).

        Raises UserError when none runs.
        """
        ...

    def run_process(self, name: str, args: argparse.Namespace) -> int:
        """Run a server (`up`, `console`, `cluster-exporter`, …) until SIGTERM or Ctrl-C;
        its exit status.
        """
        ...


class NewFile(Protocol):
    """A file that a verb writes completely or not at all, and
    never over a file of another program.
    """

    def check(self) -> None:
        """Check the name before the work. Raises UserError."""
        ...

    def write(self, data: bytes) -> None:
        """Raises UserError for a place that cannot be written or is another program's, OutsideError
        for a full disk.
        """
        ...


class Laptop(Protocol):
    @property
    def kubeconfig(self) -> str: ...


class LoadBackend(Protocol):
    """Generates load on cards. Every call blocks, and raises OutsideError if a card fails."""

    def cards(self) -> Sequence[LoadCard]:
        """All that this process may use, by index."""
        ...

    def work(
        self, cards: Sequence[LoadCard], test: LoadTest, ratio: float, seconds: float
    ) -> Sequence[WorkDone]:
        """Keep `ratio` of the tested part of all these cards busy for about `seconds`;
        the work of each.
        """
        ...

    def end(self) -> None:
        """Stop using the cards."""
        ...


class Machine(Protocol):
    """The machine on which a verb runs:
    files that a person names, arena's config, a laptop, new keys.
    """

    def read(self, name: str) -> bytes:
        """A file, `~` being the person's home. Raises OSError."""
        ...

    def new_file(
        self, name: str, what: str, example: str, is_own: Callable[[bytes], bool]
    ) -> NewFile:
        """`what`: its kind; `example`: a file name for hints;
        `is_own` checks the first bytes of an existing file.
        """
        ...

    def absolute(self, name: str) -> str:
        """The absolute path of a file: other programs run in other directories."""
        ...

    def snapshot(self, name: str) -> SavedSnapshot:
        """Raises UserError when the file cannot be read or is no snapshot."""
        ...

    def check_bundle(self, name: str) -> BundleReport:
        """Compare the files of a bundle of `make bundle` with its sums.

        Raises UserError when it cannot be read or is no bundle.
        """
        ...

    def extract_bundle(self, name: str, folder: str) -> BundleReport:
        """As `check_bundle`, and write the files into the folder if there is no fault."""
        ...

    def registry(self, address: str, user: str, password_file: str, ca_file: str) -> ImageRegistry:
        """A registry of images, which is not asked yet. `user`, `ca_file`: "" = none.

        Raises UserError for what is no address, and for files that cannot be read.
        """
        ...

    def config(self) -> Mapping[str, str]:
        """The settings of arena's config file; empty if there is none.

        One that `ARENA_CONFIG` names must be readable.
        """
        ...

    def config_file(self) -> str: ...

    def laptop_home(self, state_dir: str) -> str:
        """Where a laptop keeps its files: `state_dir`, else the usual place."""
        ...

    def laptop(self, state_dir: str) -> Laptop | None:
        """The laptop that keeps its files there;
        without `state_dir` any running one in the usual place.
        """
        ...

    def commit(self) -> str:
        """The commit of the source checkout that runs; "" if it is not a checkout."""
        ...

    def ssh_keys(self) -> SshKeys:
        """A new pair, which is not stored."""
        ...

    def load_backend(self, name: str, sim_gpus: str, *, uses_matrices: bool) -> LoadBackend:
        """`cuda`, `sim`, or `auto`: CUDA where it can be had. `sim_gpus` names the models that
        `sim` plays.

        `uses_matrices`: for FP64, FP32 and FP16, too.
        Raises OutsideError when there is none.
        """
        ...

    def store(self, url: str, password_file: str, authority: str) -> StoreAdministration:
        """The store at a URL without a password. Raises UserError for what is no such URL, and for
        files that cannot be read.
        """
        ...

    def usage_store(self, url: str, password_file: str, authority: str) -> UsageStore:
        """The usage ledger of the store at a URL without a password. Raises as `store`."""
        ...

    def page(self, url: str) -> str:
        """The body of a page.

        Raises OutsideError when it cannot be had, UserError for what is no address.
        """
        ...


class ImageRegistry(Protocol):
    """Where images of a bundle are pushed. Blocking."""

    def push(self, bundle: str, note: Callable[[str, int, str], None]) -> list[str]:
        """Push the images of a bundle that was checked; returns their names in the registry.

        `note` gets each blob that was dealt with: digest, bytes, and `sent`, `there` or
        `taken over` (from another image of the registry).

        Raises UserError for a bundle without images, and OutsideError if the registry cannot be
        reached or refuses them; another push then sends only what is missing.
        """
        ...


class StoreAdministration(Protocol):
    """The store of a console, for an operator. Blocking.

    Each raises StoreDown if the engine does not answer, UserError for a store of another schema.
    """

    def check(self) -> StoreCheck: ...

    def migrate(self, say: Callable[[str], None]) -> str:
        """Bring it to this program's schema; the version. `say` gets a line for each step."""
        ...

    def export(self) -> Iterator[bytes]:
        """Lines of JSON, with their ends: all rows, of one moment."""
        ...

    def import_lines(self, data: bytes) -> int:
        """Store the rows of an export in an empty store, all or nothing; how many.

        Raises UserError for a store with rows, and for lines that are no whole export.
        """
        ...


class Output(Protocol):
    """Where a verb prints its answer."""

    def write(self, text: str, /) -> object: ...

    def write_bytes(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


class Context(NamedTuple):
    """One invocation.

    `program` is how it was started (`fairlead` or `arena`); `now` gives epoch seconds.
    """

    program: str
    options: GlobalOptions
    messages: Messages
    world: Clusters
    stdout: Output
    env: Mapping[str, str]
    now: Callable[[], float]
    sleep: Callable[[float], None]
    machine: Machine
