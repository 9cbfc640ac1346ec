"""How long the Lease of a replica that ends stays without a holder, on the real API server."""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final

from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.objects import namespace
from tests.kube.servers import FAIRLEAD, Server, environment
from tests.waiting import wait_until

from bench.support.options import options
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import LEASES
from fairlead.errors import NotFound

SPACE: Final = "fairlead-system"
SERVERS: Final = {
    "fairlead-gpushare": ("scheduler-extender",),
    "fairlead-quota": ("quota-controller",),
    "fairlead-cluster-exporter": ("cluster-exporter", "--leader-elect", "--gpu-source=none"),
}
"""Words of each server that has a Lease, by the name of the Lease."""
SECONDS: Final = 60.0
SETTLED_SECONDS: Final = 1.5
LOOK_SECONDS: Final = 0.02


def measure_lease_handover() -> None:
    """From the end of the replica that holds a Lease until the standby holds it.

    Of each server with a Lease two replicas run, as processes with an API server on this machine.
    The holder gets SIGTERM, as in a rolling update, or SIGKILL; then it is started again as the
    standby, under another name. Figures: the middle and the longest of the rounds.
    """
    parser = options(measure_lease_handover)
    parser.add_argument("--rounds", type=int, default=10, help="of each signal (default 10)")
    rounds = parser.parse_args().rounds
    with running_control_plane() as cluster:
        cluster.admin.apply([namespace(SPACE)])
        connection = find_connection(str(cluster.kubeconfig))
        assert connection is not None
        api = KubeBlocking(connection)
        for lease, words in SERVERS.items():
            for ending in (signal.SIGTERM, signal.SIGKILL):
                found = sorted(_handovers(cluster, api, lease, words, ending, rounds))
                figures = f"{statistics.median(found):5.2f} s, longest {found[-1]:5.2f} s"
                print(f"{lease:<26} {ending.name:<8} {figures}", flush=True)


def _handovers(
    cluster: ControlPlane,
    api: KubeBlocking,
    lease: str,
    words: Sequence[str],
    ending: signal.Signals,
    rounds: int,
) -> Iterator[float]:
    """Seconds of each round."""
    with ExitStack() as leaving:
        replicas: dict[str, Component] = {}
        for number in range(rounds + 2):
            name = f"{lease}-{ending.name.lower()}-{number}"
            replicas[name] = _started(cluster, words, name, leaving)
            if len(replicas) < 2:
                wait_until("it holds the Lease", partial(_is_held, api, lease, name), SECONDS)
                continue
            time.sleep(SETTLED_SECONDS + random.random())  # the standby has seen the Lease
            holder = _holder(api, lease)
            began = time.monotonic()
            os.kill(replicas[holder].pid, ending)
            while _holder(api, lease) in ("", holder):
                time.sleep(LOOK_SECONDS)
            yield time.monotonic() - began
            replicas.pop(holder).stop()


def _started(
    cluster: ControlPlane, words: Sequence[str], name: str, leaving: ExitStack
) -> Component:
    port = free_port()
    flags = (f"--listen=127.0.0.1:{port}", f"--kubeconfig={cluster.kubeconfig}")
    argv = [*FAIRLEAD, *words, f"--identity={name}", *flags]
    replica = Component(name, argv, cluster.logs / f"{name}.log", environment())
    leaving.callback(replica.stop)
    replica.start()
    replica.wait_until(Server(replica, f"http://127.0.0.1:{port}").answers, SECONDS)
    return replica


def _is_held(api: KubeBlocking, lease: str, by: str) -> bool:
    return _holder(api, lease) == by


def _holder(api: KubeBlocking, lease: str) -> str:
    try:
        return str(api.get(LEASES, lease, SPACE)["spec"].get("holderIdentity") or "")
    except NotFound:
        return ""
