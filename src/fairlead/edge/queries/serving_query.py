"""Reads serving jobs and data for one command, and deletes serving jobs.

Blocking, for the CLI. One list each of workloads, Services and pods by one label suffices for any
number of jobs; nodes are read only if a pod shares a card.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from fairlead.edge.kube.api_failure import ForbiddenByServer
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.object_writer import ObjectWriter
from fairlead.edge.kube.resource import CLAIMS, DEPLOYMENTS, NODES, PODS, SERVICES, Resource
from fairlead.edge.queries.companions import delete_with_companions
from fairlead.edge.queries.isolation import isolated_namespaces
from fairlead.edge.queries.job_query import delete_chart_note, sorted_out
from fairlead.errors import NotFound, OutsideError
from fairlead.kinds.parts.companions import beside_serving
from fairlead.kinds.serving.kinds import INFERENCE_SERVICES, selector, servings_of
from fairlead.model.actions import DeleteObject, Result
from fairlead.model.jobs.datasets import FoundClaims
from fairlead.model.jobs.serving import FoundServings, Serving
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_MEMORY
from fairlead.model.source import Source
from fairlead.wire.data.claims import WireClaim, parse_claim
from fairlead.wire.data.fluid import DATASET, WireDataset, parse_dataset
from fairlead.wire.jobs.serving import (
    WireDeployment,
    WireInferenceService,
    WireService,
    parse_deployment,
    parse_inference_service,
    parse_service,
)
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.kube.objects import POD_FORM, WireNode, parse_node
from fairlead.wire.names import LABEL_SERVING_TYPE

_INFERENCE: Final = Resource(*INFERENCE_SERVICES[:3], kind=INFERENCE_SERVICES[3])
_DATA_SETS: Final = Resource(*DATASET[:3], kind=DATASET[3])
_BY_KIND: Final = {each.kind: each for each in (DEPLOYMENTS, _INFERENCE)}


class ServingQuery:
    """The serving jobs of one cluster for one command.

    `now`: the cluster's time, which on a laptop may differ from this machine's.
    """

    def __init__(
        self, api: KubeBlocking, now: Callable[[], float] = time.time, arena_namespace: str = ""
    ) -> None:
        self._api = api
        self._now = now
        self._arena_namespace = arena_namespace

    def read_servings(self, namespace: str, name: str = "", version: str = "") -> FoundServings:
        """See `cli.context.ClusterServings`."""
        readers: tuple[ItemReader[Any], ...] = (
            ItemReader(DEPLOYMENTS, JsonForm(WireDeployment, parse_deployment)),
            ItemReader(_INFERENCE, JsonForm(WireInferenceService, parse_inference_service)),
            ItemReader(SERVICES, JsonForm(WireService, parse_service)),
            ItemReader(PODS, POD_FORM),
        )
        chosen = Selection(namespace or None, labels=selector(name, version))
        calls: list[Callable[[], Any]] = [partial(self._list, reader, chosen) for reader in readers]
        calls.append(partial(isolated_namespaces, self._api, namespace, self._arena_namespace))
        *results, isolated = in_parallel(calls)
        if isinstance(isolated, Exception):
            raise isolated
        sources: dict[str, Source] = {}
        rows = [
            sorted_out([(reader.resource.label, result)], sources)
            for reader, result in zip(readers, results, strict=True)
        ]
        deployments, inference, services, pods = rows
        servings = servings_of([*inference, *deployments], services, pods)
        units = self._share_units([pod for each in servings for pod in each.pods])
        return FoundServings(servings, units, sources, self._now(), isolated)

    def delete(self, serving: Serving) -> None:
        """Deletes the workload with its children, the Services, the ConfigMap of the reference
        arena, and files of Fairlead without owner.
        """
        workload = serving.workload
        target = _BY_KIND[workload.kind].ref(workload.name, workload.namespace)
        chosen = f"{selector(serving.name, serving.version)},{LABEL_SERVING_TYPE}={serving.type}"
        files = beside_serving(f"{serving.name}-{serving.version}", chosen, workload.labels)
        delete_with_companions(self._api, target, files, serving.namespace)
        for service in serving.services if workload.kind == DEPLOYMENTS.kind else ():
            ObjectWriter(self._api).apply(
                DeleteObject(SERVICES.ref(service.name, service.namespace))
            ).expect(Result.GONE)
        if workload.labels.get("heritage") != "fairlead":
            delete_chart_note(
                self._api, f"{serving.name}-{serving.version}-{serving.type}", serving.namespace
            )

    def read_claims(self, namespace: str) -> FoundClaims:
        chosen = Selection(namespace or None)
        readers: tuple[ItemReader[Any], ...] = (
            ItemReader(CLAIMS, JsonForm(WireClaim, parse_claim)),
            ItemReader(_DATA_SETS, JsonForm(WireDataset, parse_dataset)),
        )
        claims, data_sets = in_parallel([partial(self._list, each, chosen) for each in readers])
        if isinstance(claims, Exception):
            raise claims
        if isinstance(data_sets, OutsideError):  # without Fluid, or without a right for it
            return FoundClaims(tuple(claims), self._now())
        if isinstance(data_sets, Exception):
            raise data_sets
        return FoundClaims(tuple(claims), self._now(), tuple(data_sets))

    def _list(self, reader: ItemReader[Any], chosen: Selection) -> list[Any]:
        return list(self._api.list_all(reader, chosen).rows.values())

    def _share_units(self, pods: Sequence[Pod]) -> dict[str, float]:
        """Units of shared memory of one card, by node.

        A node that may not be read is left out: its pods then count no GPUs.
        """
        nodes = list(
            dict.fromkeys(pod.node for pod in pods if pod.node and GPU_MEMORY in pod.limits)
        )
        found = in_parallel([partial(self._node_units, node) for node in nodes])
        units = {}
        for node, result in zip(nodes, found, strict=True):
            if isinstance(result, Exception) and not isinstance(
                result, NotFound | ForbiddenByServer
            ):
                raise result
            if isinstance(result, float):
                units[node] = result
        return units

    def _node_units(self, name: str) -> float:
        return parse_node(self._api.get(NODES, name, type=WireNode)).units_per_card
