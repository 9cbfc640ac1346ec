"""Parts that several servers share: a followed cluster and its GPU readings.

Nothing is decided here. Worlds are created and passed to apps as ports (`fairlead.ports`).
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from fairlead import settings
from fairlead.apps.installation.planning import InstallationPlanning
from fairlead.edge.components.component_facts import ComponentQuery
from fairlead.edge.connection.connection import Connection
from fairlead.edge.helm.helm_program import HelmProgram
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.operations.found_records import FoundOperationRecords
from fairlead.edge.operations.objects import KubeOperationCluster
from fairlead.edge.people.people_writer import KubePeople
from fairlead.edge.people.sign_in_api import KubeSignInApi
from fairlead.edge.prometheus.address import prometheus_connection
from fairlead.edge.prometheus.client import Prometheus
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.edge.prometheus.readings import PrometheusReadings
from fairlead.edge.queries.cluster_writes import KubeClusterWrites
from fairlead.edge.queries.dependency_facts import DependencyQuery
from fairlead.edge.queries.exporter_pods import ExporterPods, PodSearch
from fairlead.edge.queries.installation_facts import read_facts
from fairlead.edge.queries.installation_target import FIELD_MANAGER, KubeInstallationTarget
from fairlead.edge.queries.installed import records_namespace
from fairlead.edge.queries.job_files import KubeJobFiles
from fairlead.edge.queries.page_reads import KubeDataQuestions, KubeServings
from fairlead.edge.store.look import StoreLooks
from fairlead.errors import UserError
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.snapshot import GPU_TELEMETRY
from fairlead.model.source import Source, SourceState
from fairlead.ports import Clock, GpuReadings, Ports

if TYPE_CHECKING:
    from fairlead.cli.submit.forms import SubmitForms


class NoReadings:
    """`ports.GpuReadings` without GPU values (`--gpu-source none`)."""

    async def run(self) -> None:
        return

    def latest(self) -> tuple[GpuReading, ...]:
        return ()

    def source(self) -> Source:
        return Source(
            GPU_TELEMETRY,
            SourceState.OFF,
            "GPU values are not read",
            "start it with --gpu-source exporters or prometheus",
        )

    def tally(self) -> None:
        return


@asynccontextmanager
async def followed_world(
    connection: Connection, args: argparse.Namespace, env: Mapping[str, str], *, with_events: bool
) -> AsyncIterator[Ports]:
    """A real cluster, kept current while the loops of its parts run.

    Clients are closed when the block ends.

    `with_events`: whether they are read; a large cluster has many.
    """
    async with AsyncExitStack() as clients:
        api = await clients.enter_async_context(KubeApi(connection))
        clock = api.clock
        prometheus = named_prometheus(args, env)
        if prometheus is not None:
            await clients.enter_async_context(prometheus)
        gpus = gpu_readings(args, prometheus, clock, api)
        people = KubePeople(connection, clock.now, getattr(args, "kubeconfig_server", ""))
        clients.push_async_callback(people.close)
        data = KubeDataQuestions(connection, clock.now)
        clients.push_async_callback(data.close)
        components = clients.enter_context(KubeBlocking(connection))
        yield Ports(
            cluster=KubeCluster(api, clock, with_events=with_events),
            gpus=gpus,
            clock=clock,
            series=prometheus,
            name=connection.server,
            job_files=KubeJobFiles(api),
            servings=KubeServings(api),
            data=data,
            dependencies=DependencyQuery(api, prometheus),
            sign_in=KubeSignInApi(api),
            writes=KubeClusterWrites(api),
            people=people,
            operations=operation_records(api),
            operated=KubeOperationCluster(api),
            helm=HelmProgram(connection, env),
            components=lambda: ComponentQuery(components, env),
            stores=StoreLooks(),
            installation=installation_plans(components),
        )


def installation_plans(api: KubeBlocking) -> InstallationPlanning:
    """What a console plans of Fairlead's own installation."""
    return InstallationPlanning(
        lambda: KubeInstallationTarget(api), partial(read_facts, api), FIELD_MANAGER
    )


def operation_records(api: KubeApi, *, is_laptop: bool = False) -> FoundOperationRecords:
    """The records of operations of an installation; a laptop makes the namespace for them."""

    def found() -> str:
        with KubeBlocking(api.connection) as asking:
            return records_namespace(asking)

    is_laptop = is_laptop or api.connection.laptop is not None
    return FoundOperationRecords(api, found, makes_namespace=is_laptop)


def submit_forms() -> SubmitForms:
    """How a console writes jobs: with the verbs of `arena submit`, imported when needed."""
    from fairlead.cli.submit.forms import SubmitForms
    from fairlead.edge.files.ssh_keys import new_ssh_keys

    return SubmitForms(new_ssh_keys)


def named_prometheus(args: argparse.Namespace, env: Mapping[str, str]) -> Prometheus | None:
    """The Prometheus of `--prometheus` or `PROMETHEUS_ADDRESS`; None without one."""
    address = args.prometheus or env.get("PROMETHEUS_ADDRESS", "")
    if not address:
        return None
    token = "" if args.prometheus_token_file else env.get("PROMETHEUS_TOKEN", "")
    return Prometheus(
        prometheus_connection(
            address,
            token=token,
            token_file=args.prometheus_token_file,
            ca_file=args.prometheus_ca_file,
        )
    )


def gpu_readings(
    args: argparse.Namespace, prometheus: Prometheus | None, clock: Clock, api: KubeApi
) -> GpuReadings:
    """The readings of `--gpu-source`. Raises UserError for a source without its address."""
    if args.gpu_source == "none":
        return NoReadings()
    if args.gpu_source == "prometheus":
        if prometheus is None:
            raise UserError(
                "`--gpu-source prometheus` needs a Prometheus, and none is named",
                "add --prometheus URL",
            )
        return PrometheusReadings(prometheus, clock)
    if args.gpu_exporter and args.gpu_exporter_pods is None:
        return ExporterPages(args.gpu_exporter, clock, ca_file=args.gpu_exporter_ca_file)
    labels = args.gpu_exporter_pods or settings.GPU_EXPORTER_LABELS
    search = PodSearch(labels, args.gpu_exporter_namespace, args.gpu_exporter_port)
    return ExporterPages(
        args.gpu_exporter,
        clock,
        finder=ExporterPods(api, clock, search),
        ca_file=args.gpu_exporter_ca_file,
    )
