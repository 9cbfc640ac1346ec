"""Reads claims of volumes and Fluid's data sets for one command. Blocking, for the CLI."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.resource import CLAIMS, Resource
from fairlead.edge.queries.job_query import sorted_out
from fairlead.model.jobs.datasets import FoundData
from fairlead.model.source import Source
from fairlead.wire.data.claims import WireClaim, parse_claim
from fairlead.wire.data.fluid import (
    DATASET,
    RUNTIMES,
    WireDataset,
    WireRuntime,
    parse_dataset,
    parse_runtime,
)
from fairlead.wire.kube.forms import JsonForm

DATA_SETS: Final = Resource(*DATASET[:3], kind=DATASET[3])
_RUNTIMES: Final = tuple(Resource(*each[:3], kind=each[3]) for each in RUNTIMES)


class DataQuery:
    """The data of one cluster. `now`: the cluster's time, which a laptop may set."""

    def __init__(self, api: KubeBlocking, now: Callable[[], float] = time.time) -> None:
        self._api = api
        self._now = now

    def read(self, namespace: str) -> FoundData:
        """See `cli.context.ClusterData`. The runtimes are listed only where there are data sets."""
        readers: tuple[ItemReader[Any], ...] = (
            ItemReader(CLAIMS, JsonForm(WireClaim, parse_claim)),
            ItemReader(DATA_SETS, JsonForm(WireDataset, parse_dataset)),
        )
        sources: dict[str, Source] = {}
        claims, data_sets = self._rows(readers, namespace, sources)
        runtimes: list[Any] = []
        if data_sets:
            more = [
                ItemReader(each, JsonForm(WireRuntime, partial(parse_runtime, each.kind)))
                for each in _RUNTIMES
            ]
            found: dict[str, Source] = {}
            runtimes = [row for rows in self._rows(more, namespace, found) for row in rows]
            # An older or newer Fluid lacks some of the kinds.
            sources |= {name: each for name, each in found.items() if not each.is_missing}
        fluid = sources[DATA_SETS.label]
        return FoundData(
            tuple(claims),
            tuple(data_sets),
            tuple(runtimes),
            self._now(),
            {name: each for name, each in sources.items() if name != DATA_SETS.label}
            if fluid.is_missing
            else sources,
            has_fluid=not fluid.is_missing,
        )

    def _rows(self, readers: Any, namespace: str, sources: dict[str, Source]) -> list[list[Any]]:
        chosen = Selection(namespace or None)
        results = in_parallel([partial(self._list, reader, chosen) for reader in readers])
        return [
            sorted_out([(reader.resource.label, result)], sources)
            for reader, result in zip(readers, results, strict=True)
        ]

    def _list(self, reader: ItemReader[Any], chosen: Selection) -> list[Any]:
        return list(self._api.list_all(reader, chosen).rows.values())
