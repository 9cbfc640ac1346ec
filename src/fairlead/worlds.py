"""Which world does this command speak to? The one place that knows both the real world (`edge`) and the simulated one (`sim`).

Order: `--snapshot` file, then `--kubeconfig` > KUBECONFIG > ~/.kube/config > in-cluster (all of that is `edge.kubeconfig`), then a
running laptop, then the embedded simulated cluster. Every import stands in the branch that needs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead.cli.context import ClusterReader, GlobalOptions, LaptopClock
from fairlead.cli.messages import Messages
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.edge.connection import Connection
    from fairlead.edge.kube_blocking import KubeBlocking
    from fairlead.model.gpu import GpuReading

EMBEDDED_SCENARIO: Final = "default"
EMBEDDED_SEED: Final = 0
EMBEDDED_EPOCH: Final = 1_767_600_000.0
"""2026-01-05T08:00:00Z: the same cluster on every machine and every day."""


class ChosenWorld:
    """The world that the options, the environment and this machine's files mean."""

    def __init__(self, options: GlobalOptions, env: Mapping[str, str], messages: Messages) -> None:
        self._options = options
        self._env = env
        self._messages = messages

    def reader(self) -> ClusterReader:
        if self._options.snapshot:
            return self._saved(self._options.snapshot)
        connection = self._connection()
        if connection is not None:
            return self._live(connection)
        laptop = self._laptop()
        return laptop or self._embedded()

    def laptop_clock(self, state_dir: str) -> LaptopClock:
        from fairlead.cli.laptop_state import laptop_home, laptop_in
        from fairlead.edge.laptop_clock import LaptopClock as Running

        home = Path(state_dir).expanduser() if state_dir else laptop_home(self._env)
        laptop = laptop_in(home)
        if laptop is None:
            hint = "start one with `fairlead up`; only a simulated cluster's time can be moved"
            raise UserError(f"no laptop keeps its files in `{home}`", hint)
        return Running(laptop.console)

    def run_process(self, name: str, args: argparse.Namespace) -> int:
        from fairlead.processes import run_process

        return run_process(name, args, self._options, self._env, self._messages)

    def _connection(self) -> Connection | None:
        from fairlead.edge.kubeconfig import find_connection

        return find_connection(self._options.kubeconfig or None, self._options.context or None, env=self._env)

    def _laptop(self) -> ClusterReader | None:
        """The laptop that runs on this machine, if any; its GPU exporter answers for GPU values, there is no Prometheus."""
        from fairlead.cli.laptop_state import running_laptop

        laptop = running_laptop(self._env)
        if laptop is None:
            return None
        from fairlead.edge.cluster_query import ClusterQuery
        from fairlead.edge.gpu_query import page_readings
        from fairlead.edge.kube_blocking import KubeBlocking
        from fairlead.edge.kubeconfig import find_connection

        self._messages.info(f"the laptop's simulated cluster (process {laptop.pid}); pass --kubeconfig FILE for another")
        connection = find_connection(laptop.kubeconfig, env=self._env)
        assert connection is not None, "a named kubeconfig gives a connection or an error"
        _log_to(self._messages)
        return ClusterQuery(KubeBlocking(connection), lambda: page_readings(laptop.gpu_exporter))

    def _live(self, connection: Connection) -> ClusterReader:
        from fairlead.edge.cluster_query import ClusterQuery
        from fairlead.edge.kube_blocking import KubeBlocking

        _log_to(self._messages)
        api = KubeBlocking(connection)
        return ClusterQuery(api, self._readings(api))

    def _readings(self, api: KubeBlocking) -> Callable[[], tuple[GpuReading, ...]]:
        """How to ask for GPU values, when a command wants them: the Prometheus that is named, else the cluster's own."""

        def ask() -> tuple[GpuReading, ...]:
            from fairlead.cli.arena_config import read_arena_config
            from fairlead.edge.gpu_query import named_readings, proxied_readings
            from fairlead.edge.prometheus_address import prometheus_connection
            from fairlead.edge.prometheus_blocking import PrometheusBlocking

            config = read_arena_config(self._env)
            address = self._env.get("PROMETHEUS_ADDRESS") or config.get("prometheus_address", "")
            if not address:
                return proxied_readings(api)
            token = self._env.get("PROMETHEUS_TOKEN") or config.get("prometheus_token", "")
            named = prometheus_connection(address, token=token, ca_file=config.get("prometheus_ca_file", ""))
            return named_readings(PrometheusBlocking(named))

        return ask

    def _saved(self, name: str) -> ClusterReader:
        from fairlead.cli.snapshot_load import load_snapshot
        from fairlead.cli.snapshot_reader import SnapshotReader

        saved = load_snapshot(name)
        return SnapshotReader(saved.snapshot, f"snapshot {name} of {saved.cluster}", lambda: saved.objects)

    def _embedded(self) -> ClusterReader:
        from fairlead.cli.snapshot_reader import SnapshotReader
        from fairlead.sharing_hooks import sharing_world
        from fairlead.sim.scenario_file import load_scenario
        from fairlead.sim.snapshot import take_objects, take_snapshot

        world = sharing_world(load_scenario(EMBEDDED_SCENARIO), EMBEDDED_SEED, EMBEDDED_EPOCH)
        world.warm_up()
        what = f"simulated cluster (scenario {EMBEDDED_SCENARIO}, seed {EMBEDDED_SEED})"
        self._messages.info(f"{what}: there is no kubeconfig and no running laptop; pass --kubeconfig FILE for a real one")
        return SnapshotReader(take_snapshot(world), f"the {what}", lambda: take_objects(world))


def _log_to(messages: Messages) -> None:
    """What `edge` logs (an object left out, a server that asks to wait) reaches the person in the command's own dialect."""
    import logging

    class ToMessages(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say = messages.warn if record.levelno >= logging.WARNING else messages.debug
            say(record.getMessage())

    logger = logging.getLogger("fairlead")
    logger.setLevel(logging.DEBUG if messages.level == "debug" else logging.WARNING)
    logger.addHandler(ToMessages())
    logger.propagate = False
