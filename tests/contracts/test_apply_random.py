"""Contract: three managers apply, force, update and withdraw at random; the simulated and the real
API server are left with the same object and the same owners.
"""

from __future__ import annotations

import random
from typing import Any, Final

import pytest
from tests.contracts.api_client import JSON_PATCH, MERGE, ApiClient
from tests.contracts.applied import (
    DEPLOYMENTS,
    MAPS,
    SERVICES,
    Case,
    Object,
    Step,
    applying,
    differing,
    reported_owners,
)
from tests.contracts.gadgets import GADGETS, gadget

_ROUNDS: Final = 10
_STEPS: Final = 8
_MANAGERS: Final = ("one", "two", "three")


def _some(chance: random.Random, values: list[Any]) -> list[Any]:
    return chance.sample(values, chance.randint(0, len(values)))


def _words(chance: random.Random) -> Object:
    return {key: chance.choice("12") for key in _some(chance, ["a", "b", "c"])}


def _metadata(chance: random.Random) -> Object:
    found: Object = {"name": "a"}
    if chance.random() < 0.5:
        found["labels"] = _words(chance)
    if chance.random() < 0.4:
        found["finalizers"] = _some(chance, ["x.io/a", "x.io/b", "x.io/c"])
    return found


def _map(chance: random.Random) -> Object:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(chance)}
    data = _words(chance)
    return {**made, "data": data} if data else made  # the real server forgets an empty one


def _service(chance: random.Random) -> Object:
    ports = [
        {"name": f"p{port}{protocol.lower()}", "port": port, "protocol": protocol}
        for port in (80, 443)
        for protocol in ("TCP", "UDP")
    ]
    chosen = _some(chance, ports) or ports[:1]
    if chance.random() < 0.5:
        chosen = [{**port, "targetPort": chance.choice((1, 2, "web"))} for port in chosen]
    spec: Object = {"ports": chosen}
    if chance.random() < 0.5:
        spec["selector"] = {"app": chance.choice("ab")}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(chance), "spec": spec}


def _container(chance: random.Random, name: str) -> Object:
    made: Object = {"name": name, "image": f"i:{chance.choice('12')}"}
    if chance.random() < 0.5:
        made["env"] = [
            {"name": key, "value": chance.choice("12")} for key in _some(chance, ["A", "B", "C"])
        ]
    if chance.random() < 0.3:
        made["args"] = _some(chance, ["x", "y"])
    if chance.random() < 0.3:
        made["imagePullPolicy"] = chance.choice(("Always", "Never"))
    if chance.random() < 0.3:
        made["resources"] = {"limits": {"cpu": chance.choice(("1", "1000m", "2"))}}
    if chance.random() < 0.3:
        made["ports"] = [{"containerPort": port} for port in _some(chance, [80, 81])]
    return made


def _deployment(chance: random.Random) -> Object:
    names = _some(chance, ["main", "side", "third"]) or ["main"]
    pod: Object = {"containers": [_container(chance, name) for name in names]}
    if chance.random() < 0.3:
        pod["nodeSelector"] = _words(chance)
    if chance.random() < 0.3:
        pod["volumes"] = [{"name": name, "emptyDir": {}} for name in _some(chance, ["v", "w"])]
    spec: Object = {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod},
        "replicas": 0,
    }
    if chance.random() < 0.3:
        spec["revisionHistoryLimit"] = chance.choice((3, 4))
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def _gadget(chance: random.Random) -> Object:
    rows = [
        {"name": name, "size": chance.choice((1, 2)), "inner": _some(chance, ["x", "y"])}
        for name in _some(chance, ["a", "b", "c"])
    ]
    values: Object = {
        "size": chance.choice((1, 2, 3)),
        "plain": _some(chance, ["a", "b"]),
        "tags": _some(chance, ["a", "b", "c"]),
        "rows": rows,
        "places": [{"name": name} for name in _some(chance, ["a", "b"])],
        "pair": _words(chance),
        "whole": _words(chance),
        "words": _words(chance),
        "open": {"a": _words(chance), "b": _some(chance, ["x", "y"])},
        "any": chance.choice(({"a": 1}, [1], "x", {"a": {"b": 1}})),
    }
    for key in ("pair", "whole"):
        values[key].pop("c", None)
    # `size` stays, for a spec of which nothing is left is refused
    return gadget({key: values[key] for key in ("size", *_some(chance, list(values)))})


_KINDS: Final = {
    "config maps": (MAPS, _map),
    "services": (SERVICES, _service),
    "deployments": (DEPLOYMENTS, _deployment),
    "gadgets": (GADGETS, _gadget),
}


def _step(chance: random.Random, made: Object) -> Step:
    by, turn = chance.choice(_MANAGERS), chance.random()
    if turn < 0.1:
        return Step(
            MERGE, by, {"metadata": {"labels": {chance.choice("abc"): chance.choice("12")}}}
        )
    if turn < 0.2 and "data" in made:
        return Step(MERGE, by, {"data": {chance.choice("abc"): chance.choice((None, "1", "2"))}})
    if turn < 0.25 and "spec" in made and made["kind"] == "Gadget":
        return Step(MERGE, by, {"spec": {**made["spec"], "tags": None}})
    if turn < 0.3 and made["kind"] != "Deployment":  # its controller writes, too
        entries = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
        return Step(JSON_PATCH, by, entries)
    return applying(by, made, force=chance.random() < 0.4)


@pytest.mark.parametrize("number", range(_ROUNDS))
@pytest.mark.parametrize("name", _KINDS)
def test_random_writes_leave_what_they_leave_on_the_real_server(
    gadgets: list[tuple[ApiClient, str]], name: str, number: int
) -> None:
    seed = f"{name} {number}"
    chance = random.Random(seed)
    path, make = _KINDS[name]
    steps = [applying("one", make(chance)), *(_step(chance, make(chance)) for _ in range(_STEPS))]
    simulated, real = (reported_owners(api, space, Case(path, steps)) for api, space in gadgets)
    assert "\n".join(differing(simulated, real)) == "", f"the seed is `{seed}`: {steps}"
