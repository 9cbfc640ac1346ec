"""The simulated world: a cluster with everything that makes it live, moved by one clock.

(scenario, seed) and the epoch give one history. What people do to it (kubectl, the console) joins
that history at the instant it happens.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from fairlead.wire.kube.quantity import parse_quantity
from fairlead.wire.kube.time import render_time
from fairlead_sim.access.roles import install_operator_roles, install_roles
from fairlead_sim.gpus.card import FATAL_XIDS
from fairlead_sim.gpus.cards import CARD_MODELS
from fairlead_sim.gpus.devices import SimulatedDevices
from fairlead_sim.gpus.division import offered_profiles
from fairlead_sim.kubelet.csi_nodes import CsiNodes
from fairlead_sim.kubelet.exec import ContainerPrograms
from fairlead_sim.kubelet.kubelet import Kubelets
from fairlead_sim.kubelet.logs import ContainerLogs
from fairlead_sim.objects.chance import between, fraction
from fairlead_sim.objects.conditions import conditions_of, is_true, status_of, with_condition
from fairlead_sim.objects.resources import LEASES, NODES, PODS
from fairlead_sim.objects.saved import SavedWorld, in_order
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.scenario.machines import (
    LEASE_NAMESPACE,
    SHARING_LABELS,
    inventory_of,
    render_lease,
    render_node,
    with_cards,
    with_heartbeat,
    with_voice,
)
from fairlead_sim.scenario.network import LoadBalancers, keep_api_service, render_network_service
from fairlead_sim.scenario.scenario import (
    ForeignProcess,
    Hang,
    NodePool,
    PriorityClass,
    Scenario,
    Xid,
    pool_nodes,
)
from fairlead_sim.scenario.workloads import (
    render_pod,
    render_priority_class,
    render_quota_tree,
    render_service,
)
from fairlead_sim.scheduler.hooks import Hooks, no_hooks
from fairlead_sim.scheduler.needs import amounts_of
from fairlead_sim.scheduler.scheduler import Scheduler
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.accounts import Accounts
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.garbage import GarbageCollector
from fairlead_sim.store.priority import SYSTEM_CLASSES
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.time.clock import SimClock
from fairlead_sim.time.timers import Timers
from fairlead_sim.world.arrivals import Arrivals
from fairlead_sim.world.controllers import Controllers
from fairlead_sim.world.draining import COMPONENT, Draining
from fairlead_sim.world.settled import ServicePlacement

HEARTBEAT_SECONDS = 300.0
RENEWAL_SECONDS = 10.0
"""How often a kubelet renews the Lease of its node."""
FIRST_BEAT_SECONDS = 10.0
NODE_GRACE_SECONDS = 50.0
"""kube-controller-manager's node-monitor-grace-period."""
NODE_AGE_DAYS = (12.0, 140.0)
ABORTED = 134
Object = dict[str, Any]
_DAY = 86400.0
MIB = 2**20
_XID_TEXTS = {
    48: "Double Bit ECC Error",
    63: "ECC page retirement or row remapping recording event",
    79: "GPU has fallen off the bus",
}


class World:
    """`epoch` is the instant (epoch seconds) at which the history begins; `hooks` are the outside
    components that the cluster asks.

    With `saved`, the world continues where the saved one stopped; `epoch` must be the saved
    world's.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        epoch: float,
        hooks: Callable[[StoredCluster, Recorder], Hooks] = no_hooks,
        saved: SavedWorld | None = None,
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.epoch = epoch
        self.clock = SimClock(saved.now if saved else epoch)
        self.timers = Timers(self.clock)
        self.cluster = StoredCluster(self.clock, seed)
        install_roles(self.cluster)
        install_operator_roles(self.cluster, seed)
        self.accounts = Accounts(self.cluster)
        self.devices = SimulatedDevices(seed, self.clock)
        self.recorder = Recorder(self.cluster, self.timers)
        self.kubelets = Kubelets(
            self.cluster, self.timers, self.devices, self.recorder, seed, goes_on=scenario.is_copy
        )
        self.silent: set[str] = set()
        self.logs = ContainerLogs(self.kubelets, self.timers, seed)
        self.programs = ContainerPrograms(
            self.cluster, self.kubelets, self.devices, self.clock, seed
        )
        self._hooks = hooks
        asked = hooks(self.cluster, self.recorder)
        self.cluster.admission = asked.admission
        self._shares = asked.shares
        if asked.agent is not None:
            self.kubelets.agent = asked.agent
        if asked.memory is not None:
            self.devices.memory = asked.memory
        if asked.environment is not None:
            self.programs.environment = asked.environment
        self.scheduler = Scheduler(self.cluster, self.timers, self.recorder, asked.extender)
        self.controllers = Controllers(self.cluster, self.timers, self.recorder, seed)
        self.csi_nodes = CsiNodes(self.cluster, self.timers)
        self.garbage = GarbageCollector(self.cluster, self.timers)
        if asked.lives is not None:
            asked.lives(self.timers)
        self.draining = Draining(self.cluster, self.timers, self.devices, self.recorder)
        if scenario.load_balancers:
            LoadBalancers(self.cluster, self.timers, seed)
        if saved:
            self._go_on(saved)
        else:
            self._populate()
        self.cluster.before_read[LEASES] = self._renew_read
        keep_api_service(self.cluster, self.timers)
        come = saved.submitted if saved else {}
        self.arrivals = [
            Arrivals(
                stream,
                self.cluster,
                self.timers,
                seed,
                come.get(f"{stream.namespace}/{stream.name}"),
            )
            for stream in scenario.streams
        ]

    def again(self) -> World:
        """The same world at its beginning: equal seeds live equal lives."""
        return World(self.scenario, self.seed, self.epoch, self._hooks)

    def run_until(self, at: float) -> int:
        """Let time pass up to `at`; returns how many timers ran."""
        return self.timers.run_until(at)

    def step(self) -> bool:
        """Go to the next thing that happens; False if nothing is left to happen."""
        return self.timers.step()

    def warm_up(self) -> None:
        """Live through the scenario's history, so that the world is in full swing."""
        self.run_until(self.epoch + self.scenario.history.seconds)

    # --- what is there at the beginning -----------------------------------------------------------

    def _populate(self) -> None:
        number = 0
        for pool in self.scenario.node_pools:
            for name in pool_nodes(pool):
                number += 1
                self._add_node(pool, name, number)
        self._plan_mishaps()
        for name, value in SYSTEM_CLASSES.items():
            self.cluster.create(render_priority_class(PriorityClass(name, value)))
        for priority in self.scenario.priority_classes:
            self.cluster.create(render_priority_class(priority))
        for namespace in self.scenario.namespaces:
            created = render_time(self.epoch - 30 * _DAY)
            self.cluster.load(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {
                        "name": namespace,
                        "creationTimestamp": created,
                        "labels": {"kubernetes.io/metadata.name": namespace},
                    },
                    "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"},
                }
            )
        if self.scenario.quota:
            self.cluster.create(render_quota_tree(self.scenario.quota))
        settlement = ServicePlacement(self.cluster, self.scheduler.ledger, self.kubelets, self.seed)
        for service in self.scenario.services:
            if self.scenario.settled:
                settlement.put(service)
            else:
                self.cluster.create(render_service(service))
        for pod in self.scenario.pods:
            self.cluster.create(render_pod(pod))
        for network_service in self.scenario.network_services:
            self.cluster.create(render_network_service(network_service))
        self.cluster.subscribe(NODES, self._on_node)

    def _plan_mishaps(self) -> None:
        """What the scenario lets happen; of what has already
        happened in an earlier life, the rest.
        """
        now = self.clock.now()
        for outage in self.scenario.outages:
            begins = self.epoch + outage.at.seconds
            ends = self.epoch + outage.until.seconds if outage.until is not None else None
            if begins >= now:
                self.timers.at(begins, partial(self.fall_silent, outage.node))
            elif ends is None or ends >= now:
                self.fall_silent(outage.node, for_seconds=now - begins)
            if ends is not None and ends >= now:
                self.timers.at(ends, partial(self.come_back, outage.node))
        for xid in self.scenario.xids:
            at = self.epoch + xid.at.seconds
            if at >= now:
                self.timers.at(at, partial(self._report_xid, xid))
            elif self.devices.cards(xid.node):
                self.devices.cards(xid.node)[xid.gpu].report_xid(xid.code, at)
        self._plan_devices()

    def _plan_devices(self) -> None:
        """Register the scenario's cards that hang and foreign programs with the devices.

        They follow from their times; no event is needed for them.
        """
        for hang in self.scenario.hangs:
            if self.devices.cards(hang.node):  # in a life that goes on, its node may be gone
                self.devices.hang(hang.node, hang.gpu, *self._instants(hang))
        for process in self.scenario.foreign_processes:
            if self.devices.cards(process.node):
                mib = int(parse_quantity(process.memory) / MIB)
                self.devices.take_memory(
                    process.node, process.gpu, mib, process.load, *self._instants(process)
                )

    def _instants(self, planned: Hang | ForeignProcess) -> tuple[float, float | None]:
        return (
            self.epoch + planned.at.seconds,
            None if planned.until is None else self.epoch + planned.until.seconds,
        )

    def _go_on(self, saved: SavedWorld) -> None:
        """Take everything over as it is; controllers, scheduler and kubelets find what it means."""
        self.cluster.names.counter = saved.names_counter
        self.cluster.begin_again(saved.resource_version)
        made_anew = (
            [(ref, obj) for ref in self.cluster.kinds() for obj in self.cluster.scan(ref)]
            if saved.is_whole
            else []
        )
        objects = in_order(saved.objects)
        going = [
            obj
            for obj in objects
            if obj["kind"] == "CustomResourceDefinition" and "deletionTimestamp" in obj["metadata"]
        ]
        for obj in objects:
            if obj["kind"] == "Node":
                self._take_over_node(obj)
            elif obj["kind"] == "Pod" and obj["spec"].get("nodeName"):
                node = self.cluster.get(NODES, None, obj["spec"]["nodeName"]) or {}
                self.kubelets.take_over(
                    obj, node, saved.held.get(obj["metadata"]["uid"], ()), saved.lived_since
                )
            self.cluster.restore(obj if obj not in going else _staying(obj))
        for obj in going:  # now that their objects are there, which go first
            self.cluster.restore(obj)
        for ref, obj in made_anew:
            # deleted in the earlier life
            if (
                self.cluster.get(ref, obj["metadata"].get("namespace"), obj["metadata"]["name"])
                is obj
            ):
                self.cluster.remove(ref, obj)
        self.recorder.take_over()
        self._plan_mishaps()
        self.cluster.subscribe(NODES, self._on_node)

    def _take_over_node(self, node: Object) -> None:
        """A node that was ready reports soon; another node stays
        silent until it is brought back.
        """
        name, is_reporting = node["metadata"]["name"], is_true(node, "Ready")
        if inventory := inventory_of(node, is_wished_shared=self._shares(_labels(node))):
            mig = offered_profiles(amounts_of(status_of(node).get("capacity")), len(inventory))
            self.devices.restore_node(name, inventory, is_silent=not is_reporting, mig=mig)
        if is_reporting:
            self.timers.after(
                FIRST_BEAT_SECONDS * fraction(self.seed, "heartbeat", name),
                partial(self._beat, name),
            )
        else:
            self.silent.add(name)
            self.kubelets.fall_silent(name)

    def _add_node(self, pool: NodePool, name: str, number: int) -> None:
        if pool.gpus:
            is_shared = not pool.mig and (pool.shared or self._shares(pool.labels))
            self.devices.add_node(
                name,
                CARD_MODELS[pool.gpu_model],
                pool.gpus,
                shared=is_shared,
                is_silent=not pool.ready,
                mig=pool.mig,
            )
        created_at = self.epoch - _DAY * between(
            self.seed, *NODE_AGE_DAYS, "age", pool.name or name
        )
        node = self.cluster.load(
            render_node(pool, name, number, self.devices.cards(name), created_at, self.epoch)
        )
        self.cluster.create(render_lease(node, self.epoch), is_trusted=True)
        if pool.ready:
            self.timers.after(
                HEARTBEAT_SECONDS * fraction(self.seed, "heartbeat", name),
                partial(self._beat, name),
            )

    # --- what goes on by itself -------------------------------------------------------------------

    def _beat(self, name: str) -> None:
        """The kubelet's report when nothing changed; a deleted node reports no more."""
        now = self.clock.now()
        if name in self.silent:
            return
        node = self.cluster.mutate(NODES, None, name, lambda node: with_heartbeat(node, now))
        if node is None:
            return
        self._renew(node, now)
        self.timers.after(HEARTBEAT_SECONDS, partial(self._beat, name))

    def _renew(self, node: Object, at: float) -> None:
        """Renew the node's Lease, or create it; a renewal does not go back in time."""
        lease, name = render_lease(node, at), node["metadata"]["name"]
        old = self.cluster.get(LEASES, LEASE_NAMESPACE, name)
        if old is None:
            with suppress(ApiStatus):  # the namespace of leases was deleted
                self.cluster.create(lease)
        elif ((old.get("spec") or {}).get("renewTime") or "") < lease["spec"]["renewTime"]:
            self.cluster.mutate(
                LEASES, LEASE_NAMESPACE, name, lambda old: {**old, "spec": lease["spec"]}
            )

    def _renew_read(self, namespace: str | None, name: str) -> None:
        """Renew the Leases that a client reads: one, or those of all nodes ("").

        A kubelet writes every ten seconds. For 5,000 nodes that is more than all else that a
        world does, so what it would have written is written when a client reads it.
        """
        if namespace not in (None, LEASE_NAMESPACE):
            return
        now = self.clock.now()
        leases = [] if name else self.cluster.list(LEASES, LEASE_NAMESPACE)
        for each in [name] if name else [lease["metadata"]["name"] for lease in leases]:
            node = self.cluster.get(NODES, None, each)
            if node is None or each in self.silent:
                continue
            if self.cluster.get(LEASES, LEASE_NAMESPACE, each) is not None:
                since = now - self.epoch + RENEWAL_SECONDS * fraction(self.seed, "renewal", each)
                self._renew(node, now - since % RENEWAL_SECONDS)

    def _on_node(self, event: LoggedChange) -> None:
        """Labels decide whether a node shares its cards, and how; holders keep their cards."""
        if event.type == DELETED or event.previous is None:
            return
        name, cards = (
            event.object["metadata"]["name"],
            self.devices.cards(event.object["metadata"]["name"]),
        )
        had, wishes = _labels(event.previous), _labels(event.object)
        if any(card.instances for card in cards):
            return  # divided by MIG, whatever its labels are
        is_shared = self._shares(wishes)
        moves = self._shares(had) is not is_shared and cards and cards[0].is_shared is not is_shared
        if cards and (
            moves or any(had.get(label) != wishes.get(label) for label in SHARING_LABELS)
        ):
            for card in cards:
                card.is_shared = is_shared
            self.draining.switch(name)

    def fall_silent(self, name: str, for_seconds: float = 0.0) -> None:
        """The node stops reporting (`for_seconds` ago); the cluster notices it when the grace of
        its lease is over.
        """
        self._renew_read(LEASE_NAMESPACE, name)
        self.silent.add(name)
        self.kubelets.fall_silent(name)
        self.devices.set_silent(name, True)
        if for_seconds < NODE_GRACE_SECONDS:
            self.timers.after(NODE_GRACE_SECONDS - for_seconds, partial(self._notice_silence, name))

    def _notice_silence(self, name: str) -> None:
        if name not in self.silent:
            return
        now = self.clock.now()
        node = self.cluster.mutate(
            NODES, None, name, lambda node: with_voice(node, now, is_reporting=False)
        )
        if node is None:
            return
        self.recorder.normal(
            node, "NodeNotReady", f"Node {name} status is now: NodeNotReady", "node-controller"
        )
        for pod in [
            pod
            for pod in self.cluster.scan(PODS)
            if pod["spec"].get("nodeName") == name and is_true(pod, "Ready")
        ]:
            metadata = pod["metadata"]
            self.cluster.mutate(
                PODS,
                metadata["namespace"],
                metadata["name"],
                partial(_not_ready, time=render_time(now)),
            )
            self.recorder.warning(pod, "NodeNotReady", "Node is not ready", "node-controller")

    def come_back(self, name: str) -> None:
        self.silent.discard(name)
        self.cluster.mutate(
            NODES, None, name, lambda node: with_voice(node, self.clock.now(), is_reporting=True)
        )
        self.devices.set_silent(name, False)
        self.kubelets.come_back(name)
        self._beat(name)

    def _report_xid(self, xid: Xid) -> None:
        card = self.devices.cards(xid.node)[xid.gpu]
        card.report_xid(xid.code, self.clock.now())
        if xid.code in FATAL_XIDS:
            for hold in [hold for hold in card.holds if hold.run is not None]:
                self.kubelets.kill(hold.pod_uid, hold.container, ABORTED)
        node = self.cluster.mutate(
            NODES, None, xid.node, lambda node: with_cards(node, self.devices.cards(xid.node))
        )
        if node is not None and not card.is_healthy:
            text = _XID_TEXTS.get(xid.code, "see NVIDIA's table of XID errors")
            message = f"GPU {card.index} ({card.uuid}) reported XID {xid.code}: {text}"
            self.recorder.warning(node, "GPUUnhealthy", message, COMPONENT, xid.node)


def _staying(obj: dict[str, Any]) -> dict[str, Any]:
    """The object as if it had not been deleted."""
    return {
        **obj,
        "metadata": {
            key: value for key, value in obj["metadata"].items() if key != "deletionTimestamp"
        },
    }


def _labels(node: dict[str, Any]) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def _not_ready(pod: dict[str, Any], time: str) -> dict[str, Any]:
    conditions = with_condition(conditions_of(pod), "Ready", "False", "", "", time)
    return {**pod, "status": {**status_of(pod), "conditions": conditions}}
