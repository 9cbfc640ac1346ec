"""Objects of serving jobs as an API server sends them, and a small cluster of them for the commands
of `serve`.
"""

from __future__ import annotations

import importlib
import io
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from tests.cli.api_objects import Object
from tests.cli.command import KeptOutput, OneWorld, Printed
from tests.cli.job_objects import CREATED, moment

from fairlead.cli.frame.context import ClusterServings, Context
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.parser import VerbModule, global_options, make_parser, split_verb
from fairlead.cli.snapshot.reader import SnapshotReader
from fairlead.kinds.serving.kinds import servings_of
from fairlead.model.jobs.datasets import DataSet, FoundClaims
from fairlead.model.jobs.serving import FoundServings, Serving
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.run.machine import OwnMachine
from fairlead.wire.data.claims import WireClaim, parse_claim
from fairlead.wire.jobs.serving import (
    WireDeployment,
    WireInferenceService,
    WireService,
    parse_deployment,
    parse_inference_service,
    parse_service,
)
from fairlead.wire.kube.objects import WirePod, parse_pod


def meta(
    name: str, type_: str, of: str, version: str, namespace: str = "default", **labels: str
) -> Object:
    own = {"servingType": type_, "servingName": of, "servingVersion": version}
    return {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "creationTimestamp": moment(0),
        "labels": {**own, "heritage": "fairlead", **labels},
    }


def deployment(
    of: str,
    version: str,
    *,
    type_: str = "custom-serving",
    replicas: int = 1,
    available: int = 0,
    **more: Any,
) -> Object:
    """`limits`: those of its one container. All other keywords are fields of the metadata."""
    limits = more.pop("limits", {})
    template = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    return {
        "metadata": meta(f"{of}-{version}-x", type_, of, version, **more),
        "spec": {"replicas": replicas, "template": template},
        "status": {"replicas": replicas, "availableReplicas": available},
    }


def service(
    of: str, version: str, ports: Mapping[str, int], *, type_: str = "custom-serving", **more: Any
) -> Object:
    """`node_ports` by port name; `balancer` is an address; all other keywords are fields of the
    metadata.
    """
    node_ports, balancer, ip = (
        more.pop("node_ports", {}),
        more.pop("balancer", ""),
        more.pop("ip", "10.96.0.7"),
    )
    reported = [
        {
            "name": name,
            "port": port,
            **({"nodePort": node_ports[name]} if name in node_ports else {}),
        }
        for name, port in ports.items()
    ]
    return {
        "metadata": meta(f"{of}-{version}", type_, of, version, **more),
        "spec": {"clusterIP": ip, "ports": reported},
        "status": {"loadBalancer": {"ingress": [{"ip": balancer}]} if balancer else {}},
    }


def serving_pod(
    of: str, version: str, name: str, *, type_: str = "custom-serving", on: str = "n1", **more: Any
) -> Object:
    """`phase`, `limits`, `ready`, `restarts`; all other keywords are fields of the metadata."""
    phase, limits, ready = (
        more.pop("phase", "Running"),
        more.pop("limits", {}),
        more.pop("ready", True),
    )
    status = {"name": "main", "ready": ready, "restartCount": more.pop("restarts", 0)}
    state = (
        {"running": {"startedAt": moment(0)}}
        if phase == "Running"
        else {"waiting": {"reason": "ContainerCreating"}}
    )
    return {
        "metadata": meta(name, type_, of, version, **more),
        "spec": {"nodeName": on, "containers": [{"name": "main", "resources": {"limits": limits}}]},
        "status": {
            "phase": phase,
            "hostIP": "10.0.0.1" if on else "",
            "containerStatuses": [{**status, "state": state}] if on else [],
        },
    }


def inference_service(of: str, version: str, url: str = "", **more: Any) -> Object:
    return {
        "metadata": meta(of, "kserve", of, version, **more),
        "status": {"url": url} if url else {},
    }


def claim(
    name: str, modes: Sequence[str], *, phase: str = "Bound", deleted: bool = False, **more: Any
) -> Object:
    metadata = {
        "name": name,
        "namespace": more.pop("namespace", "default"),
        "creationTimestamp": moment(0),
        "annotations": more or None,
    }
    if deleted:
        metadata["deletionTimestamp"] = moment(5)
    spec = {"accessModes": list(modes), "volumeName": f"pv-{name}"}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def _read(objects: Sequence[Object], wire: type[Any], parse: Any) -> list[Any]:
    return [parse(msgspec.json.decode(json.dumps(each), type=wire)) for each in objects]


class Servings:
    """`cli.context.ClusterServings` of objects. `sources` replace those of a cluster where
    everything could be read; `units` by node.
    """

    def __init__(self, **objects: Any) -> None:
        self._deployments = _read(objects.get("deployments", ()), WireDeployment, parse_deployment)
        self._inference = _read(
            objects.get("inference", ()), WireInferenceService, parse_inference_service
        )
        self._services = _read(objects.get("services", ()), WireService, parse_service)
        self._pods = _read(objects.get("pods", ()), WirePod, parse_pod)
        self._claims = _read(objects.get("claims", ()), WireClaim, parse_claim)
        self._units: Mapping[str, float] = objects.get("units", {})
        self._sources: Mapping[str, Source] = objects.get("sources", {})
        self._data_sets: tuple[DataSet, ...] | None = objects.get("data_sets")
        self._after: float = objects.get("after", 60.0)
        self.deleted: list[str] = []

    def read_servings(self, namespace: str, name: str = "", version: str = "") -> FoundServings:
        found = servings_of([*self._inference, *self._deployments], self._services, self._pods)
        wanted = [each for each in found if namespace in ("", each.namespace)]
        wanted = [
            each for each in wanted if name in ("", each.name) and version in ("", each.version)
        ]
        names = ("deployments.apps", "inferenceservices.serving.kserve.io", "services", "pods")
        sources = {each: Source(each) for each in names} | dict(self._sources)
        return FoundServings(tuple(wanted), self._units, sources, CREATED + self._after)

    def delete(self, serving: Serving) -> None:
        self.deleted.append(serving.workload.name)

    def read_claims(self, namespace: str) -> FoundClaims:
        return FoundClaims(
            tuple(each for each in self._claims if namespace in ("", each.namespace)),
            CREATED + self._after,
            self._data_sets,
        )


class _Logs:
    """Answers `pods/log`; every namespace exists."""

    def is_absent(self, namespace: str) -> bool:
        return False

    def log(self, namespace: str, pod: str, options: Mapping[str, str | int]) -> Iterator[bytes]:
        yield f"{namespace}/{pod} {sorted(options.items())}\n".encode()


class _World(OneWorld):
    def __init__(self, cluster: Servings | None) -> None:
        super().__init__(SnapshotReader(ClusterSnapshot(), "a snapshot of the tests"))
        self._cluster = cluster

    def servings(self) -> ClusterServings | None:
        return self._cluster

    def jobs(self) -> Any:
        return _Logs()


def run_serving(line: str, cluster: Servings | None) -> Printed:
    """Runs `line`, which does not contain `arena`. Errors are raised as exceptions, as `main`
    receives them.
    """
    out, err = KeptOutput(), io.StringIO()
    verb, rest = split_verb(shlex.split(line), "arena")
    assert verb is not None, line
    module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
    args = make_parser(module, "arena").parse(rest)
    messages = Messages("arena", err, now=lambda: 0.0)
    context = Context(
        "arena",
        global_options(args),
        messages,
        _World(cluster),
        out,
        {},
        lambda: 0.0,
        lambda _: None,
        OwnMachine({}),
    )
    status = module.run(args, context)
    return Printed(status, out.getvalue(), err.getvalue())
