"""Two extenders behind a proxy that loses replies, each with its own kube-scheduler, of which one
runs. Storms strike these programs.

The programs outlive a storm: starting four programs for each of twenty storms would cost more than
the storms.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.extender import Extender, scheduler_for
from tests.kube.fault_proxy import FaultProxy, lost_reply, too_many_requests


class ShareLine:
    def __init__(self, cluster: ControlPlane, proxy: FaultProxy) -> None:
        self.leader = 0
        self._cluster = cluster
        self._proxy = proxy
        server = proxy.kubeconfig.read_text().split("server: ")[1].split()[0].strip('"')
        self.extenders = [
            Extender(cluster, f"storm-extender-{side}", server=server) for side in "ab"
        ]
        self.schedulers = [
            scheduler_for(cluster, each.port, f"storm-scheduler-{side}", backoff_seconds=1)
            for each, side in zip(self.extenders, "ab", strict=True)
        ]

    def ready(self) -> None:
        """Make sure that all programs run, whatever an earlier storm left behind, and that no fault
        is planned.
        """
        self._proxy.forget()
        if not self._cluster.components["kube-apiserver"].is_running:
            self._cluster.start_component("kube-apiserver")
        for extender in self.extenders:
            if not extender.component.is_running:
                extender.component.start()
        for extender in self.extenders:
            extender.start_is_done()
        if not self.schedulers[self.leader].is_running:
            self.schedulers[self.leader].start()

    def stop(self) -> None:
        for component in (*self.schedulers, *(extender.component for extender in self.extenders)):
            component.stop()

    def running(self) -> list[Component]:
        return [self.schedulers[self.leader], *(extender.component for extender in self.extenders)]

    # --- accidents --------------------------------------------------------------------------------

    def kill_extender(self, chance: random.Random) -> None:
        """Kill the extender in use; at times both, so that no process is left that knew which
        bindings were on their way.
        """
        for place in (self.leader, *([1 - self.leader] if chance.random() < 0.4 else [])):
            self.extenders[place].component.kill()
            self.extenders[place].component.start()

    def lose_replies(self, chance: random.Random) -> None:
        for _ in range(chance.randint(1, 4)):
            self._proxy.plan(lost_reply("binding"))

    def refuse_for_a_moment(self, chance: random.Random) -> None:
        """The API server is overloaded for a moment, and then an answer is lost."""
        self._proxy.plan(too_many_requests("binding", 1))
        self._proxy.plan(lost_reply("binding"))

    def take_over(self, chance: random.Random) -> None:
        self.schedulers[self.leader].kill()
        self.leader = 1 - self.leader
        self.schedulers[self.leader].start()

    def close_streams(self, chance: random.Random) -> None:
        self._proxy.close_streams()

    @property
    def accidents(self) -> tuple[Callable[[random.Random], None], ...]:
        return (
            self.kill_extender,
            self.lose_replies,
            self.take_over,
            self.refuse_for_a_moment,
            self.close_streams,
        )

    def api_server_away(self, seconds: float) -> None:
        self._cluster.components["kube-apiserver"].kill()
        time.sleep(seconds)
        self._cluster.start_component("kube-apiserver")
