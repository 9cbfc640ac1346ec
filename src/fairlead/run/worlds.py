"""The world of a command: a real cluster, a snapshot, a laptop, or the embedded simulated cluster.

Order: `--snapshot` file, then `--kubeconfig` > KUBECONFIG > ~/.kube/config > in-cluster
(`edge/connection/kubeconfig`), then a running laptop, then the embedded simulated cluster. Every
import is in the branch that needs it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.frame.context import (
    ClusterComponents,
    ClusterCrons,
    ClusterData,
    ClusterJobs,
    ClusterObjects,
    ClusterOperations,
    ClusterPeople,
    ClusterReader,
    ClusterServings,
    GlobalOptions,
    LaptopTime,
)
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.object_names import check_namespace
from fairlead.errors import UserError
from fairlead.run.machine import OwnMachine
from fairlead.settings import LAPTOP_CONTEXT

if TYPE_CHECKING:
    from fairlead.edge.connection.connection import Connection, LaptopPages
    from fairlead.edge.console.console_api import ConsoleApi
    from fairlead.edge.kube.kube_blocking import KubeBlocking
    from fairlead.model.devices.gpu import GpuReading
    from fairlead.model.installation import Installation
    from fairlead.model.installed.facts import InstallationFacts
    from fairlead.model.people.record import KeptToken
    from fairlead.model.quota.setup import BuiltInQuota, QuotaSetup
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.ports import InstallationTarget, WorkLease

    Readings = Callable[[str], tuple[GpuReading, ...]]
    Now = Callable[[], float]

_HANDLER: Final = "messages of a command"
EMBEDDED_SCENARIO: Final = "default"
EMBEDDED_SEED: Final = 0
EMBEDDED_EPOCH: Final = 1_767_600_000.0
"""2026-01-05T08:00:00Z: the same cluster on every machine and every day."""


class ChosenWorld:
    """The world that the options, the environment and this machine's files select.

    `is_writing`: the command changes something in it. `past`: what `options.snapshot` names, in
    the place of a file.
    """

    def __init__(
        self,
        options: GlobalOptions,
        env: Mapping[str, str],
        messages: Messages,
        *,
        is_writing: bool = False,
        past: ClusterSnapshot | None = None,
    ) -> None:
        self._past = past
        self._is_writing = is_writing
        self._options = options
        self._env = env
        self._machine = OwnMachine(env)
        self._messages = messages

    def reader(self) -> ClusterReader:
        if self._options.snapshot:
            return self._saved(self._options.snapshot)
        found = self._api()
        if found is None:
            return self._embedded()
        from fairlead.edge.queries.cluster_query import ClusterQuery

        return ClusterQuery(found[0], partial(found[1], ""))

    def jobs(self) -> ClusterJobs:
        from fairlead.cli.snapshot.jobs import SnapshotJobs

        if self._options.snapshot:
            return SnapshotJobs(self._saved(self._options.snapshot))
        found = self._api()
        if found is None:
            return SnapshotJobs(self._embedded())
        from fairlead.edge.queries.job_query import JobQuery

        return JobQuery(*found, arena_namespace=self._options.arena_namespace)

    def objects(self) -> ClusterObjects | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.kube.object_writer import ObjectWriter

        return ObjectWriter(found[0])

    def servings(self) -> ClusterServings | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.queries.serving_query import ServingQuery

        return ServingQuery(found[0], found[2], self._options.arena_namespace)

    def data(self) -> ClusterData | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.queries.data_query import DataQuery

        return DataQuery(found[0], found[2])

    def operations(self, *, makes_namespace: bool = False) -> ClusterOperations | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.helm.helm_program import HelmProgram
        from fairlead.edge.kube.object_writer import ObjectWriter
        from fairlead.edge.queries.installed import records_namespace
        from fairlead.run.commands.operations import CommandOperations

        api, _, now = found
        return CommandOperations(
            api.connection,
            records_namespace(api),
            now(),
            self._messages,
            ObjectWriter(api).submitter,
            helm=HelmProgram(api.connection, self._env),
            makes_namespace=makes_namespace or api.connection.laptop is not None,
        )

    def components(self) -> ClusterComponents | None:
        return self._components

    @cached_property
    def _components(self) -> ClusterComponents | None:
        """One for all questions of a command: it keeps its connections and what it has read."""
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.components.component_facts import ComponentQuery

        return ComponentQuery(found[0], self._env)

    def quota_setup(self) -> QuotaSetup | BuiltInQuota | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.queries.quota_setup import read_built_in, read_setup

        return (
            read_setup(found[0]) if found[0].connection.laptop is None else read_built_in(found[0])
        )

    def installation_target(self) -> InstallationTarget | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.queries.installation_target import KubeInstallationTarget

        return KubeInstallationTarget(found[0])

    def installation_lease(self, by: str, namespace: str = "") -> WorkLease | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.queries.installed import records_namespace
        from fairlead.run.commands.installation_lease import InstallationLease

        api, _, now = found
        place = namespace or records_namespace(api)
        return InstallationLease(api.connection, place, by, now, self._messages.info)

    def installation_facts(self, choose: Callable[[str], Installation]) -> InstallationFacts | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.queries.installation_facts import read_facts

        return read_facts(found[0], choose)

    def crons(self) -> ClusterCrons | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.queries.cron_query import CronQuery

        return CronQuery(found[0])

    def people(self) -> ClusterPeople | None:
        found = None if self._options.snapshot else self._api()
        if found is None:
            return None
        from fairlead.edge.people.people_query import PeopleQuery

        return PeopleQuery(found[0], found[2])

    def renew(self, cluster: Mapping[str, Any], token: KeptToken) -> KeptToken:
        from fairlead.edge.people.renewal import renewed, renewing_api

        with renewing_api(cluster, token) as api:
            return renewed(api, token)

    def namespace(self) -> str:
        if self._options.namespace:
            return self._options.namespace
        config = self._machine.config()
        named = config.get("namespace", "")
        if named:
            check_namespace(named)
            return named
        return (
            not self._options.snapshot and self._connection and self._connection.namespace
        ) or "default"

    def console(self) -> str:
        config = self._machine.config()
        named = config.get("console_address", "")
        connection = (
            None if named or self._options.snapshot else self._connection or self._running_laptop
        )
        if connection is None:
            return named
        return connection.laptop.console if connection.laptop is not None else connection.console

    def console_pages(self, named: str, ca_file: str) -> ConsoleApi:
        from fairlead.edge.console.console_api import ConsoleApi

        url = named or self.console()
        if not url:
            raise UserError(
                "the address of the console is not known",
                "name it with --console, or the store with --store; kubeconfigs that a console "
                "issues contain its address",
            )
        connection = None if self._options.snapshot else self._connection or self._running_laptop
        return ConsoleApi(url, partial(_authorization, connection), ca_file=ca_file, env=self._env)

    def laptop_clock(self, state_dir: str) -> LaptopTime:
        from fairlead.edge.files.laptop_clock import LaptopClock

        named = None if state_dir else self._named_laptop
        if named is not None:
            return LaptopClock(named.console, partial(_authorization, self._connection))
        laptop = self._machine.laptop(state_dir)
        if laptop is None:
            home = self._machine.laptop_home(state_dir)
            hint = (
                "start one with `fairlead up`, or name its directory with --state-dir; only "
                "simulated time can be moved"
            )
            raise UserError(f"no laptop keeps its files in `{home}`", hint)
        return LaptopClock(laptop.console, partial(_authorization_of, laptop.kubeconfig))

    def run_process(self, name: str, args: argparse.Namespace) -> int:
        from fairlead.run.servers.process import run_process

        return run_process(name, args, self._options, self._env, self._messages)

    @cached_property
    def _connection(self) -> Connection | None:
        from fairlead.edge.connection.kubeconfig import find_connection

        return find_connection(
            self._options.kubeconfig or None, self._options.context or None, env=self._env
        )

    @property
    def _is_named(self) -> bool:
        """Whether the user named a cluster."""
        return bool(
            self._options.kubeconfig or self._options.context or self._env.get("KUBECONFIG")
        )

    @property
    def _named_laptop(self) -> LaptopPages | None:
        """The laptop of the kubeconfig that the user named.

        A cluster named by flags must be a laptop's; the one of the variable need not be.
        """
        if not self._is_named or self._connection is None:
            return None
        if self._connection.laptop is None and (self._options.kubeconfig or self._options.context):
            what = f"context `{self._connection.context}` of {self._connection.origin}"
            problem = f"`{self._connection.server}`, {what}, is no laptop's cluster"
            raise UserError(
                problem,
                (
                    "only simulated time can be moved; leave out --kubeconfig and --context "
                    "for the laptop that runs here"
                ),
            )
        return self._connection.laptop

    def _announce_target(self, connection: Connection) -> None:
        """If no cluster is named and a laptop runs here, warn: a new user may mean the laptop."""
        if not self._is_writing or self._is_named or connection.laptop is not None:
            return
        laptop = self._machine.laptop("")
        if laptop is not None:
            where = f"context `{connection.context}` of {connection.origin}"
            other = (
                f'the laptop (process {laptop.pid}) is chosen by `eval "$(fairlead env)"` or '
                f"--kubeconfig {laptop.kubeconfig}"
            )
            self._messages.warn(f"this goes to `{connection.server}`, {where}; {other}")

    def _api(self) -> tuple[KubeBlocking, Readings, Now] | None:
        """The API server, a reader of GPU values, and its current time.

        Of a named cluster, else of the laptop that runs here.
        """
        connection = self._connection or self._running_laptop
        if connection is None:
            return None
        self._announce_target(connection)
        _log_to(self._messages)
        from fairlead.edge.kube.kube_blocking import KubeBlocking

        api, laptop = KubeBlocking(connection), connection.laptop
        return (
            api,
            self._readings(api, laptop),
            partial(_laptop_now, connection, laptop) if laptop is not None else time.time,
        )

    @cached_property
    def _running_laptop(self) -> Connection | None:
        laptop = self._machine.laptop("")
        if laptop is None:
            return None
        from fairlead.edge.connection.kubeconfig import find_connection

        self._messages.info(
            f"the laptop's simulated cluster (process {laptop.pid}); pass --kubeconfig FILE for "
            "another"
        )
        return find_connection(laptop.kubeconfig, LAPTOP_CONTEXT, env=self._env)

    def _readings(self, api: KubeBlocking, laptop: LaptopPages | None) -> Readings:
        """Reads GPU values: from the named Prometheus, else a laptop's page or the cluster's own.

        The answer has all cards that pods of a namespace hold ("" = all namespaces), and perhaps
        more.
        """

        def ask(namespace: str) -> tuple[GpuReading, ...]:
            from fairlead.edge.prometheus.address import prometheus_connection
            from fairlead.edge.prometheus.blocking import PrometheusBlocking
            from fairlead.edge.queries.gpu_query import (
                named_readings,
                page_readings,
                proxied_readings,
            )

            config = self._machine.config()
            address = self._env.get("PROMETHEUS_ADDRESS") or config.get("prometheus_address", "")
            if not address:
                return (
                    page_readings(laptop.gpu_exporter)
                    if laptop is not None
                    else proxied_readings(api, namespace)
                )
            token = self._env.get("PROMETHEUS_TOKEN") or config.get("prometheus_token", "")
            named = prometheus_connection(
                address, token=token, ca_file=config.get("prometheus_ca_file", "")
            )
            return named_readings(PrometheusBlocking(named), namespace)

        return ask

    def _saved(self, name: str) -> ClusterReader:
        from fairlead.cli.snapshot.reader import SnapshotReader

        if self._past is not None:
            return SnapshotReader(self._past, f"the cluster {name}")
        saved = self._machine.snapshot(name)
        return SnapshotReader(
            saved.snapshot, f"snapshot {name} of {saved.cluster}", lambda: saved.objects
        )

    def _embedded(self) -> ClusterReader:
        from fairlead.cli.snapshot.reader import SnapshotReader
        from fairlead.run.invocation import needing_simulation

        with needing_simulation("a command without a cluster"):
            from fairlead.run.hooks.sharing_hooks import sharing_world
            from fairlead_sim.scenario.file import load_scenario
            from fairlead_sim.world.snapshot import take_objects, take_snapshot
        world = sharing_world(load_scenario(EMBEDDED_SCENARIO), EMBEDDED_SEED, EMBEDDED_EPOCH)
        world.warm_up()
        what = f"simulated cluster (scenario {EMBEDDED_SCENARIO}, seed {EMBEDDED_SEED})"
        self._messages.info(
            f"{what}: there is no kubeconfig and no running laptop; pass --kubeconfig FILE for a "
            "real one"
        )
        return SnapshotReader(take_snapshot(world), f"the {what}", lambda: take_objects(world))


def _authorization(connection: Connection | None) -> str:
    """The header with which the API server is asked, "" for a certificate."""
    return connection.credentials.current().authorization or "" if connection is not None else ""


def _authorization_of(kubeconfig: str) -> str:
    from fairlead.edge.connection.kubeconfig import find_connection

    return _authorization(find_connection(kubeconfig, LAPTOP_CONTEXT, env={}))


def _laptop_now(connection: Connection, laptop: LaptopPages) -> float:
    """The simulated time, from which ages count; if it is unknown, the machine's."""
    from fairlead.edge.connection.timestamp import parse_rfc3339
    from fairlead.edge.files.laptop_clock import LaptopClock
    from fairlead.errors import FairleadError

    try:
        clock = LaptopClock(laptop.console, partial(_authorization, connection))
        return parse_rfc3339(clock.read().now)
    except FairleadError:
        return time.time()


def _log_to(messages: Messages) -> None:
    """Prints what `edge` logs as the command's messages.

    Such as an object left out, or a server that asks to wait.
    """
    import logging

    class ToMessages(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say = messages.warn if record.levelno >= logging.WARNING else messages.debug
            say(record.getMessage())

    logger, handler = logging.getLogger("fairlead"), ToMessages()
    handler.set_name(_HANDLER)
    for former in [each for each in logger.handlers if each.get_name() == _HANDLER]:
        logger.removeHandler(former)  # else each line would be printed twice
    logger.setLevel(logging.DEBUG if messages.level == "debug" else logging.WARNING)
    logger.addHandler(handler)
    logger.propagate = False
