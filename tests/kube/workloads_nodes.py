"""Workloads that depend on their nodes: the scheduler's messages and choices, and what happens when
nodes change under pods.
"""

from __future__ import annotations

from typing import Any

from tests.contracts.api_client import JSON_PATCH
from tests.kube.kwok_stages import NOT_READY
from tests.kube.places import Object, Place
from tests.kube.workload_cases import workload, workload_with_nodes
from tests.kube.workload_objects import budget, deployment, node, pod, taint, template, tolerates

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

NODES = (
    node("plain-1", "plain", zone="a"),
    node("plain-2", "plain", zone="b"),
    node("plain-3", "plain", zone="b"),
    node("tainted-1", "tainted", taints=(taint("hard", "NoSchedule"),)),
    node("tainted-2", "tainted", taints=(taint("soft", "NoSchedule"),)),
    node("small-1", "small", cpu="1"),
    node("never-1", "never", cpu="1"),
    node("tight-1", "tight", cpu="2"),
    node("tight-2", "tight", cpu="2"),
    node("drained-1", "drained"),
    node("chased-1", "chased"),
    node("silent-1", "silent"),
    node("silent-2", "other"),
    node("closed-1", "closed"),
    node("lost-1", "lost"),
    node("lost-2", "lost"),
    node("mixed-1", "mixed", zone="a"),
    node("mixed-2", "mixed", zone="b", taints=(taint("hard", "NoSchedule"),)),
)


def _runs(place: Place, *names: str) -> None:
    def is_so() -> bool:
        found = [place.get("pods", name) for name in names]
        return all(item is not None and item["status"]["phase"] == "Running" for item in found)

    place.until(f"{names} run", is_so)


def _waits(place: Place, name: str) -> None:
    def is_so() -> bool:
        conditions = place.the("pods", name)["status"].get("conditions") or ()
        return any(
            item["type"] == "PodScheduled" and item["status"] == "False" for item in conditions
        )

    place.until(f"{name} gets the reason it waits for", is_so)


@workload
def what_no_node_has(place: Place) -> None:
    place.create(
        pod("much", cpu="100"), pod("nowhere", role="moon"), pod("tight", role="tight", cpu="3")
    )
    place.create(pod("anywhere", role="", cpu="100"), pod("mixed", role="mixed", cpu="65"))
    for name in ("much", "nowhere", "tight", "anywhere", "mixed"):
        _waits(place, name)


def _beside(app: str, key: str = "kubernetes.io/hostname") -> Object:
    return {_REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]}


@workload
def node_affinity(place: Place) -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    first = _first(
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["plain-3"]}]}
    )
    high = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["9"]}]}
    wish = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [zone]}, **first}}
    nowhere = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [high]}}}
    place.create(pod("wishes", role="", affinity=wish), pod("hopes", role="", affinity=nowhere))
    _runs(place, "wishes")
    _waits(place, "hopes")


@workload
def anti_affinity(place: Place) -> None:
    for number in range(4):
        place.create(
            pod(f"lonely-{number}", app="lonely", affinity={"podAntiAffinity": _beside("lonely")})
        )
        (_runs if number < 3 else _waits)(place, f"lonely-{number}")
    place.create(pod("other", app="lonely"))
    _waits(place, "other")


@workload
def pod_affinity(place: Place) -> None:
    place.create(pod("early", app="friend", affinity={"podAffinity": _beside("star", "zone")}))
    _waits(place, "early")
    place.create(pod("star", app="star", role="", nodeName="plain-1"))
    _runs(place, "star", "early")


@workload
def preferred_pod_affinity(place: Place) -> None:
    place.create(pod("star", app="star", role="", nodeName="plain-2"))
    _runs(place, "star")
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "star"}},
    }
    near = {"podAffinity": {_PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}
    place.create(pod("fan", app="fan", role="", affinity={**near, "nodeAffinity": _only("plain")}))
    _runs(place, "fan")


def _role_term(*roles: str) -> Object:
    return {"matchExpressions": [{"key": "role", "operator": "In", "values": list(roles)}]}


def _only(*roles: str) -> Object:
    return {_REQUIRED: {"nodeSelectorTerms": [_role_term(*roles)]}}


def _first(term: Object) -> Object:
    return {_PREFERRED: [{"weight": 100, "preference": term}]}


def _count(place: Place) -> int:
    return int((place.the("deployments", "web").get("status") or {}).get("availableReplicas", 0))


def _spread(key: str) -> list[Object]:
    selector = {"matchLabels": {"app": "web"}}
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
        }
    ]


@workload
def topology_spread(place: Place) -> None:
    """Zone `a` has one node, zone `b` two: no zone gets two pods more than the other."""
    wish = {"nodeAffinity": _only("plain")}
    place.create(
        deployment(template(role="", affinity=wish, topologySpreadConstraints=_spread("zone")), 4)
    )
    place.until(
        "four run",
        lambda: [item["status"]["phase"] for item in place.list("pods")] == ["Running"] * 4,
    )
    zones = sorted(
        "a" if item["spec"]["nodeName"] == "plain-1" else "b" for item in place.list("pods")
    )
    assert zones == ["a", "a", "b", "b"], zones
    place.delete("deployments", "web", "Foreground")
    place.until("all are gone", lambda: not place.list("pods"))


@workload
def topology_spread_that_cannot_be(place: Place) -> None:
    """One pod may not be where it must be, beside two others in zone `a`; no node has the topology
    that another pod requests.
    """
    for number in range(2):
        place.create(pod(f"fixed-{number}", role="", nodeName="plain-1"))
    _runs(place, "fixed-0", "fixed-1")
    wish = {"nodeAffinity": _only("plain")}
    place.create(
        pod(
            "skewed",
            role="",
            topologySpreadConstraints=_spread("zone"),
            affinity={**wish, "podAffinity": _beside("web")},
        )
    )
    place.create(pod("keyless", role="", topologySpreadConstraints=_spread("rack"), affinity=wish))
    for name in ("skewed", "keyless"):
        _waits(place, name)


@workload
def scheduling_gates(place: Place) -> None:
    place.create(
        pod("held", schedulingGates=[{"name": "example.com/wait"}]),
        pod("freed", schedulingGates=[{"name": "example.com/wait"}]),
    )
    _waits(place, "held")
    _waits(place, "freed")
    place.patch(
        "pods", "freed", [{"op": "remove", "path": "/spec/schedulingGates/0"}], kind=JSON_PATCH
    )
    _runs(place, "freed")


@workload
def pods_of_no_node(place: Place) -> None:
    """A pod that is bound to a node that does not exist is deleted; a pod that cannot be bound
    waits.
    """
    place.create(pod("nowhere", role="", nodeName="moon-1"))
    place.until("it is gone", lambda: place.get("pods", "nowhere") is None)


def _class(name: str, value: int, **more: Any) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


@workload
def preemption(place: Place) -> None:
    place.create(_class("preemption-high", 1000), _class("preemption-low", 10))
    for name, rank in (("low", "preemption-low"), ("none", "")):
        place.create(
            pod(name, role="small", cpu="500m", **({"priorityClassName": rank} if rank else {}))
        )
    _runs(place, "low", "none")
    place.create(pod("high", role="small", cpu="500m", priorityClassName="preemption-high"))
    _runs(place, "high")
    place.until("the least important is gone", lambda: place.get("pods", "none") is None)


@workload
def preemption_that_may_not_be(place: Place) -> None:
    place.create(_class("never-high", 1000, preemptionPolicy="Never"))
    place.create(pod("low", role="never", cpu="800m"))
    _runs(place, "low")
    place.create(
        pod("polite", role="never", cpu="500m", priorityClassName="never-high"),
        pod("equal", role="never", cpu="500m"),
    )
    _waits(place, "polite")
    _waits(place, "equal")


@workload
def budget_in_percent(place: Place) -> None:
    place.create(deployment(template(), 4), budget("web", maxUnavailable="30%"))
    place.until("four are available", lambda: _count(place) == 4)
    place.until(
        "two may go",
        lambda: (
            place.the("poddisruptionbudgets", "web").get("status", {}).get("disruptionsAllowed")
            == 2
        ),
    )


@workload
def budget_of_bare_pods(place: Place) -> None:
    place.create(
        *[pod(f"bare-{number}", app="bare") for number in range(3)], budget("bare", minAvailable=2)
    )
    _runs(place, "bare-0", "bare-1", "bare-2")
    place.until(
        "one may go",
        lambda: (
            place.the("poddisruptionbudgets", "bare").get("status", {}).get("disruptionsAllowed")
            == 1
        ),
    )
    assert place.evict("bare-0").status == 201
    refused = place.evict("bare-1")
    assert refused.status == 429, refused
    place.until("it is gone", lambda: place.get("pods", "bare-0") is None)


# --- nodes change ---------------------------------------------------------------------------------


@workload_with_nodes
def drain_under_a_budget(place: Place) -> None:
    """As `kubectl drain` does: cordon, evict what the budget allows, and repeat until all pods are
    elsewhere.
    """
    wish = {"nodeAffinity": {**_only("drained", "plain"), **_first(_role_term("drained"))}}
    made = template(role="", affinity=wish)
    place.create(deployment(made, 3), budget("web", minAvailable=2))
    place.until("all are available", lambda: _count(place) == 3)
    place.patch("nodes", "drained-1", {"spec": {"unschedulable": True}})

    def is_empty() -> bool:
        staying = [
            item for item in place.list("pods") if item["spec"].get("nodeName") == "drained-1"
        ]
        for item in staying:
            assert place.evict(item["metadata"]["name"]).status in (201, 404, 429)
        return not staying

    place.until("the node is empty", is_empty)
    place.until("all are available", lambda: _count(place) == 3)
    spread = {item["spec"]["nodeName"] for item in place.list("pods")}
    assert "drained-1" not in spread
    place.delete("deployments", "web", "Foreground")
    place.until("all are gone", lambda: not place.list("pods"))


@workload_with_nodes
def chased_away(place: Place) -> None:
    forever, briefly = tolerates("sick"), tolerates("sick", effect="NoExecute", tolerationSeconds=2)
    place.create(
        pod("stays", role="chased", tolerations=[forever]),
        pod("lingers", role="chased", tolerations=[briefly]),
    )
    place.create(pod("goes", role="chased"))
    _runs(place, "stays", "lingers", "goes")
    place.patch("nodes", "chased-1", {"spec": {"taints": [taint("sick", "NoExecute")]}})
    place.until("two are gone", lambda: len(place.list("pods")) == 1)


@workload_with_nodes
def not_ready_node(place: Place) -> None:
    brief = [tolerates("node.kubernetes.io/not-ready", effect="NoExecute", tolerationSeconds=3)]
    wish = {"nodeAffinity": {**_only("silent", "other"), **_first(_role_term("silent"))}}
    place.create(deployment(template(role="", tolerations=brief, affinity=wish), 1))
    place.create(pod("patient", role="silent"))
    place.until("it is available", lambda: _count(place) == 1)
    _runs(place, "patient")
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "silence"}
    place.patch("nodes", "silent-1", {"metadata": {"annotations": {NOT_READY: "yes"}}})
    place.patch("nodes", "silent-1", {"status": {"conditions": [ready]}}, "status")
    place.until(
        "it is elsewhere",
        lambda: all(
            item["spec"].get("nodeName") == "silent-2"
            for item in place.list("pods", "app=web,pod-template-hash")
        ),
    )
    place.until("it is available", lambda: _count(place) == 1)


@workload_with_nodes
def cordoned_node(place: Place) -> None:
    place.create(pod("there", role="closed"))
    _runs(place, "there")
    place.patch("nodes", "closed-1", {"spec": {"unschedulable": True}})
    place.create(pod("late", role="closed"))
    _waits(place, "late")
    place.patch("nodes", "closed-1", {"spec": {"unschedulable": False}})
    _runs(place, "late")


@workload_with_nodes
def node_deleted_under_its_pods(place: Place) -> None:
    first = _first(
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["lost-1"]}]}
    )
    wish = {"nodeAffinity": {**_only("lost"), **first}}
    place.create(
        deployment(template(role="", affinity=wish), 1), pod("bare", role="", affinity=wish)
    )
    place.until("it is available", lambda: _count(place) == 1)
    _runs(place, "bare")
    place.delete("nodes", "lost-1")
    place.until("the pods are gone", lambda: place.get("pods", "bare") is None)
    place.until(
        "it is elsewhere",
        lambda: {item["spec"].get("nodeName") for item in place.list("pods")} == {"lost-2"},
    )
    place.until("it is available", lambda: _count(place) == 1)
