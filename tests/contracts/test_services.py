"""Contract: what a Service holds (an address, ports on the nodes) and what becomes of it when its
type changes.

Every case is a few writes, sent to both servers; the answers, and the final Service, must be the
same. Values that a server has chosen by itself are numbered in the order in which they appear, so
that `kept` and `changed` can be distinguished.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from tests.contracts.api_client import APPLY, MERGE, STRATEGIC, Answer, ApiClient
from tests.contracts.objects import Object


class Step(NamedTuple):
    """One write: how (`POST`, `PUT`, `DELETE` or the media type of a patch), which spec, of which
    Service.
    """

    how: str
    spec: Object
    name: str = "a"
    query: Mapping[str, Any] = {}


_PORTS = {"ports": [{"port": 80}]}
_TYPES: dict[str, Object] = {
    "ClusterIP": {"type": "ClusterIP"},
    "NodePort": {"type": "NodePort"},
    "LoadBalancer": {"type": "LoadBalancer"},
    "local LoadBalancer": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
    "portless LoadBalancer": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
    "ExternalName": {"type": "ExternalName", "externalName": "x.example.com"},
    "headless": {"type": "ClusterIP", "clusterIP": "None"},
}


def _transitions() -> Iterator[tuple[str, list[Step]]]:
    """From every type to every other, by a patch of the new fields, and by the whole manifest in
    three ways.
    """
    for before, first in _TYPES.items():
        for after, then in _TYPES.items():
            made = Step("POST", {**_PORTS, **first})
            whole = {**_PORTS, **then}
            yield f"{before} to {after}, merged", [made, Step(MERGE, then)]
            yield f"{before} to {after}, replaced", [made, Step("PUT", whole)]
            back = Step(STRATEGIC, {**dict.fromkeys(then), **first})
            yield (
                f"{before} to {after} and back",
                [made, Step(STRATEGIC, {**dict.fromkeys(first), **then}), back],
            )


def _http(**more: Any) -> Object:
    return {"name": "http", "port": 80, **more}


def _web(**more: Any) -> Object:
    return {"name": "web", "port": 81, **more}


def _node_port(*ports: Object, **more: Any) -> Object:
    return {"type": "NodePort", "ports": list(ports), **more}


_ADDRESS = {"clusterIP": "10.96.0.77", **_PORTS}
_TWO_PROTOCOLS = [
    {"name": "t", "port": 53, "protocol": "TCP"},
    {"name": "u", "port": 53, "protocol": "UDP"},
]
_LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", **_PORTS}
_SEQUENCES: dict[str, list[Step]] = {
    # ports
    "a port is added": [
        Step("POST", _node_port(_http())),
        Step("PUT", _node_port(_http(), _web())),
    ],
    "a port is added by a patch": [
        Step("POST", _node_port(_http())),
        Step(STRATEGIC, {"ports": [_web()]}),
    ],
    "a port is renamed": [
        Step("POST", _node_port(_http())),
        Step("PUT", _node_port(_http(name="other"))),
    ],
    "a port of no name gets one": [
        Step("POST", _node_port({"port": 80})),
        Step("PUT", _node_port(_http())),
    ],
    "a port gets another number": [
        Step("POST", _node_port(_http())),
        Step("PUT", _node_port(_http(port=8080))),
    ],
    "a port is removed": [
        Step("POST", _node_port(_http(), _web())),
        Step("PUT", _node_port(_web())),
    ],
    "two ports change places": [
        Step("POST", _node_port(_http(), _web())),
        Step("PUT", _node_port(_web(), _http())),
    ],
    "a node port is asked for later": [
        Step("POST", _node_port(_http())),
        Step("PUT", _node_port(_http(nodePort=30011))),
    ],
    "a node port is let go": [
        Step("POST", _node_port(_http(nodePort=30011))),
        Step(MERGE, {"ports": [_http(nodePort=None)]}),
    ],
    "a node port of 0": [
        Step("POST", _node_port(_http(nodePort=30011))),
        Step(STRATEGIC, {"ports": [{"port": 80, "nodePort": 0}]}),
    ],
    "a node port moves to another port": [
        Step("POST", _node_port(_http(nodePort=30012), _web(nodePort=30013))),
        Step("PUT", _node_port(_http(nodePort=30013), _web())),
    ],
    "the same again": [
        Step("POST", _node_port(_http(), _web())),
        Step("PUT", _node_port(_http(), _web())),
    ],
    "two protocols on one port": [Step("POST", {"type": "NodePort", "ports": _TWO_PROTOCOLS})],
    "two protocols on one port that is asked for": [
        Step(
            "POST",
            {
                "type": "NodePort",
                "ports": [{**_TWO_PROTOCOLS[0], "nodePort": 30014}, _TWO_PROTOCOLS[1]],
            },
        ),
        Step(MERGE, {"type": "ClusterIP"}),
        Step("POST", _node_port(_http(nodePort=30014)), "b"),
    ],
    "two protocols on one port, later": [
        Step("POST", {"ports": _TWO_PROTOCOLS}),
        Step(
            MERGE,
            {"type": "NodePort", "ports": [{**port, "nodePort": 30015} for port in _TWO_PROTOCOLS]},
        ),
    ],
    "one node port twice": [Step("POST", _node_port(_http(nodePort=30016), _web(nodePort=30016)))],
    "one node port twice, later": [
        Step("POST", _node_port(_http(), _web())),
        Step("PUT", _node_port(_http(nodePort=30016), _web(nodePort=30016))),
    ],
    # what is taken
    "a node port that is taken": [
        Step("POST", _node_port(_http(nodePort=30017))),
        Step("POST", _node_port(_http(nodePort=30017)), "b"),
        Step("POST", _node_port(_http(nodePort=30017, protocol="UDP")), "b"),
        Step("DELETE", {}),
        Step("POST", _node_port(_http(nodePort=30017)), "b"),
    ],
    "a node port that is taken, by a change": [
        Step("POST", _node_port(_http(nodePort=30018))),
        Step("POST", _node_port(_http()), "b"),
        Step(STRATEGIC, {"ports": [{"port": 80, "nodePort": 30018}]}, "b"),
        Step(MERGE, {"type": "ClusterIP"}),
        Step(STRATEGIC, {"ports": [{"port": 80, "nodePort": 30018}]}, "b"),
    ],
    "a node port that is given back by a change": [
        Step("POST", _node_port(_http(nodePort=30019), _web(nodePort=30020))),
        Step("PUT", _node_port(_http(nodePort=30019))),
        Step("POST", _node_port(_http(nodePort=30020)), "b"),
        Step("PUT", {"type": "ExternalName", "externalName": "x.example.com"}),
        Step("PUT", _node_port(_http(nodePort=30019)), "b"),
    ],
    "a node port below the range": [Step("POST", _node_port(_http(nodePort=80)))],
    "a node port above the range, later": [
        Step("POST", _node_port(_http())),
        Step("PUT", _node_port(_http(nodePort=32768))),
    ],
    "a node port that is none": [Step("POST", _node_port(_http(nodePort=70000)))],
    "a node port below 0": [Step("POST", _node_port(_http(nodePort=-1)))],
    "an address that is taken": [
        Step("POST", _ADDRESS),
        Step("POST", _ADDRESS, "b"),
        Step("PUT", {"type": "ExternalName", "externalName": "x.example.com"}),
        Step("POST", _ADDRESS, "b"),
        Step("PUT", _ADDRESS),
        Step("DELETE", {}, "b"),
        Step("PUT", _ADDRESS),
    ],
    "an address out of the range": [Step("POST", {"clusterIP": "1.2.3.4", **_PORTS})],
    "an address of the other family": [Step("POST", {"clusterIP": "fd00::1", **_PORTS})],
    "an address that is none": [Step("POST", {"clusterIP": "here", **_PORTS})],
    "an address twice": [
        Step(
            "POST",
            {"clusterIP": "10.96.0.78", "clusterIPs": ["10.96.0.78", "10.96.0.79"], **_PORTS},
        )
    ],
    "two addresses that disagree": [
        Step("POST", {"clusterIP": "10.96.0.78", "clusterIPs": ["10.96.0.79"], **_PORTS})
    ],
    "only the list of addresses": [Step("POST", {"clusterIPs": ["10.96.0.78"], **_PORTS})],
    "another address": [
        Step("POST", _PORTS),
        Step(MERGE, {"clusterIP": "10.96.0.80"}),
        Step("PUT", {"clusterIP": "10.96.0.80", **_PORTS}),
    ],
    "another address in both places": [
        Step("POST", _PORTS),
        Step(MERGE, {"clusterIP": "10.96.0.80", "clusterIPs": ["10.96.0.80"]}),
    ],
    "the address is emptied": [
        Step("POST", _ADDRESS),
        Step(MERGE, {"clusterIP": ""}),
        Step(MERGE, {"clusterIP": None, "clusterIPs": None}),
    ],
    "an address for a headless Service": [
        Step("POST", {"clusterIP": "None", **_PORTS}),
        Step(MERGE, {"clusterIP": "10.96.0.81"}),
    ],
    "no address for one that has one": [Step("POST", _ADDRESS), Step(MERGE, {"clusterIP": "None"})],
    "a headless Service without ports": [
        Step("POST", {"clusterIP": "None"}),
        Step(MERGE, {"selector": {"a": "b"}}),
    ],
    "a headless Service that selects": [
        Step("POST", {"clusterIP": "None", "selector": {"a": "b"}}),
        Step(MERGE, {"selector": None}),
    ],
    "a headless Service for the nodes": [
        Step("POST", {"clusterIP": "None", "type": "NodePort", **_PORTS})
    ],
    "a headless Service with a balancer": [
        Step("POST", {"clusterIP": "None", "type": "LoadBalancer", **_PORTS})
    ],
    # load balancers
    "the port of health checks": [
        Step("POST", {**_LOCAL, "healthCheckNodePort": 30021}),
        Step("PUT", {**_LOCAL, "healthCheckNodePort": 30022}),
    ],
    "the port of health checks, kept": [
        Step("POST", {**_LOCAL, "healthCheckNodePort": 30021}),
        Step("PUT", _LOCAL),
    ],
    "the port of health checks, taken": [
        Step("POST", _node_port(_http(nodePort=30023))),
        Step("POST", {**_LOCAL, "healthCheckNodePort": 30023}, "b"),
        Step("DELETE", {}),
        Step("POST", {**_LOCAL, "healthCheckNodePort": 30023}, "b"),
        Step("POST", _node_port(_http(nodePort=30023))),
        Step(MERGE, {"externalTrafficPolicy": "Cluster"}, "b"),
        Step("POST", _node_port(_http(nodePort=30023))),
    ],
    "the port of health checks of another type": [
        Step("POST", {**_node_port(_http()), "healthCheckNodePort": 30021})
    ],
    "no node ports any more": [
        Step("POST", {"type": "LoadBalancer", **_PORTS}),
        Step(MERGE, {"allocateLoadBalancerNodePorts": False}),
        Step("PUT", {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, **_PORTS}),
        Step(MERGE, {"allocateLoadBalancerNodePorts": True}),
    ],
    "a node port that is asked for all the same": [
        Step(
            "POST",
            {
                "type": "LoadBalancer",
                "allocateLoadBalancerNodePorts": False,
                "ports": [_http(nodePort=30024), _web()],
            },
        )
    ],
    "node ports of a ClusterIP": [
        Step("POST", _PORTS),
        Step(MERGE, {"ports": [{"port": 80, "nodePort": 30025}]}),
    ],
    "a balancer's fields for another type": [
        Step("POST", {"type": "NodePort", "allocateLoadBalancerNodePorts": True, **_PORTS}),
        Step("POST", {"type": "NodePort", "loadBalancerClass": "x.io/y", **_PORTS}),
        Step("POST", {"type": "NodePort", "loadBalancerSourceRanges": ["1.2.3.0/24"], **_PORTS}),
        Step("POST", {"externalTrafficPolicy": "Local", **_PORTS}),
    ],
    "the class of a balancer": [
        Step("POST", {"type": "LoadBalancer", "loadBalancerClass": "x.io/y", **_PORTS}),
        Step(MERGE, {"loadBalancerClass": "x.io/z"}),
        Step("PUT", {"type": "LoadBalancer", **_PORTS}),
        Step(MERGE, {"type": "NodePort"}),
    ],
    "the sources of a balancer": [
        Step(
            "POST", {"type": "LoadBalancer", "loadBalancerSourceRanges": ["1.2.3.0/24"], **_PORTS}
        ),
        Step(MERGE, {"type": "ClusterIP"}),
        Step(MERGE, {"type": "ClusterIP", "loadBalancerSourceRanges": None}),
    ],
    "unknown policies": [
        Step("POST", _node_port(_http(), externalTrafficPolicy="Nope")),
        Step("POST", {"internalTrafficPolicy": "Nope", **_PORTS}),
        Step("POST", {"ipFamilyPolicy": "Nope", **_PORTS}),
        Step("POST", {"ipFamilies": ["IPv5"], **_PORTS}),
    ],
    # families
    "one family by name": [
        Step("POST", {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", **_PORTS})
    ],
    "two families preferred": [
        Step("POST", {"ipFamilyPolicy": "PreferDualStack", **_PORTS}),
        Step("PUT", _PORTS),
    ],
    "two families required": [Step("POST", {"ipFamilyPolicy": "RequireDualStack", **_PORTS})],
    "the other family": [Step("POST", {"ipFamilies": ["IPv6"], **_PORTS})],
    # the rest of the spec
    "another name outside": [
        Step("POST", {"type": "ExternalName", "externalName": "x.example.com."}),
        Step(MERGE, {"externalName": "Not_A.name"}),
        Step(MERGE, {"externalName": ""}),
    ],
    "an ExternalName with an address": [
        Step("POST", {"type": "ExternalName", "externalName": "x.io", "clusterIP": "10.96.0.90"})
    ],
    "an ExternalName with a family": [
        Step("POST", {"type": "ExternalName", "externalName": "x.io", "ipFamilies": ["IPv4"]})
    ],
    "sessions stay with a client": [
        Step("POST", {"sessionAffinity": "ClientIP", **_PORTS}),
        Step(MERGE, {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}}),
        Step(MERGE, {"sessionAffinity": "None"}),
    ],
    "addresses of others": [
        Step("POST", {"externalIPs": ["1.2.3.4"], **_PORTS}),
        Step(MERGE, {"externalIPs": None}),
    ],
    "no ports any more": [Step("POST", _PORTS), Step(MERGE, {"ports": None})],
    "a dry run takes nothing": [
        Step(
            "POST",
            _node_port(_http(nodePort=30026), clusterIP="10.96.0.82"),
            query={"dryRun": "All"},
        ),
        Step("POST", _node_port(_http(nodePort=30026), clusterIP="10.96.0.82"), "b"),
        Step(
            "POST",
            _node_port(_http(nodePort=30026), clusterIP="10.96.0.83"),
            query={"dryRun": "All"},
        ),
    ],
    "applied, and applied again": [
        Step(APPLY, {"type": "NodePort", "ports": [_http()]}),
        Step(APPLY, {"type": "NodePort", "ports": [_http()]}),
        Step(APPLY, {"type": "LoadBalancer", "ports": [_http()]}),
        Step(APPLY, {"type": "ClusterIP", "ports": [_http()]}),
    ],
}
_CASES = {**dict(_transitions()), **_SEQUENCES}


@pytest.mark.parametrize("steps", _CASES.values(), ids=[name.replace(" ", "-") for name in _CASES])
def test_a_service_becomes_what_it_becomes_on_the_real_server(
    worlds: list[tuple[ApiClient, str]], steps: list[Step]
) -> None:
    simulated, real = (_lived(api, space, steps) for api, space in worlds)
    # once in 2682 times the real server returns by chance the port that was given back
    if simulated != real:
        simulated, real = (_lived(api, space, steps) for api, space in worlds)
    assert simulated == real


def _lived(api: ApiClient, space: str, steps: list[Step]) -> list[Any]:
    """The answer to each step, in comparable words."""
    collection = f"/api/v1/namespaces/{space}/services"
    try:
        return _numbered([_reported(_asked(api, collection, step)) for step in steps])
    finally:
        for name in {step.name for step in steps}:
            api.delete(f"{collection}/{name}")


def _asked(api: ApiClient, collection: str, step: Step) -> Answer:
    path = f"{collection}/{step.name}"
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": step.name},
        "spec": step.spec,
    }
    if step.how == "DELETE":
        return api.delete(path)
    if step.how in ("POST", "PUT"):
        return api.ask(
            step.how, collection if step.how == "POST" else path, body, query=dict(step.query)
        )
    if step.how == APPLY:
        return api.patch(path, body, APPLY, fieldManager="contract", force="true")
    return api.patch(path, {"spec": step.spec}, step.how, **step.query)


def _reported(answer: Answer) -> list[Any]:
    if answer.status >= 400:
        return [answer.status, answer.reason, answer.message]
    return [
        answer.status,
        answer.body.get("spec"),
        answer.body.get("status"),
        answer.headers.get("warning"),
    ]


_CHOSEN = re.compile(
    # 10.96.0.1 to 10.96.0.255 and the ports below 30086 are given only to a Service that names them
    r"\b10\.(?!96\.0\.[1-9])\d+\.\d+\.\d+\b"
    r"|\b3(?!0000\b|00[0-7]\d\b|008[0-5]\b|2767\b|276[89]\b)[0-2]\d\d\d\b"
)


def _numbered(reported: list[Any]) -> list[Any]:
    """Addresses and ports that the server chose by itself, numbered in the order of their
    appearance; the ranges under one name.
    """
    seen: dict[str, str] = {}
    text = json.dumps(reported, sort_keys=True).replace("10.96.0.0/16", "10.96.0.0/12")
    return list(
        json.loads(_CHOSEN.sub(lambda found: seen.setdefault(found[0], str(-1 - len(seen))), text))
    )
