"""A scenario's history as Prometheus would have scraped it: pages of the GPU exporter of each node
and of the cluster exporter.

The exporter itself makes each page, at every minute of the world's own time. Only the series that
the rules read are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from tests.apps.fakes import FakeDevices, FixedClock
from tests.docs.promql import metrics_of, parse
from tests.prometheus.promtool import RULES, selector

from fairlead.apps.cluster_exporter import ClusterExporterSettings, cluster_families
from fairlead.apps.gpu_exporter import GpuExporter, GpuExporterSettings
from fairlead.model.devices.device import DeviceSample
from fairlead.rules.metrics.over_grant import over_grant_families
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.metrics.prom_text import parse_page, render_page
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import WorldReader, take_snapshot
from fairlead_sim.world.world import World

EPOCH = 1_767_600_000.0
STEP_SECONDS = 60
_TIMES = "_timestamp_seconds"
Series = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels."""


def read_by_rules() -> frozenset[str]:
    """Metrics of pages that a rule reads."""
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return frozenset(
        name for rule in rules for name in metrics_of(parse(rule["expr"])) if ":" not in name
    )


def recorded(
    scenario: str, seconds: float, seed: int = 0, kept: frozenset[str] | None = None
) -> dict[str, str]:
    """Selector -> values, one a minute from the world's first moment, in promtool's notation.

    `kept`: names of metrics, None = those that rules read. Times of the world's clock count from
    its first moment, which is where promtool's clock begins.
    """
    world = sharing_world(load_scenario(scenario), seed, EPOCH)
    found: dict[Series, list[float | None]] = {}
    steps = int(seconds // STEP_SECONDS) + 1
    for step, page in enumerate(_pages(world, steps, read_by_rules() if kept is None else kept)):
        for series, value in page.items():
            values = found.setdefault(series, [])
            values += [None] * (step - len(values))
            values.append(value - EPOCH if series[0].endswith(_TIMES) else value)
    return {
        selector(name, dict(labels)): notation(values, steps)
        for (name, labels), values in found.items()
    }


def notation(values: Sequence[float | None], steps: int) -> str:
    """promtool's notation: a series that a page no longer has is stale from then on, not only
    without samples.

    >>> notation([None, 1.0, 1.0, 1.0, None, 2.5], 8)
    '_ 1x2 stale 2.5 stale'
    """
    printed: list[str] = []
    before: float | None = None
    for value in [*values, *([None] * (len(values) < steps))]:
        if value is None:
            printed.append("stale" if before is not None else "_")
        elif printed and value == before and value not in (float("inf"), float("-inf")):
            first, _, times = printed[-1].partition("x")
            printed[-1] = f"{first}x{int(times or 0) + 1}"
        else:
            printed.append({float("inf"): "Inf", float("-inf"): "-Inf"}.get(value, f"{value:.15g}"))
        before = value
    return " ".join(printed)


def _pages(world: World, steps: int, kept: frozenset[str]) -> Iterator[dict[Series, float]]:
    """The lines of all pages together at each minute. A node whose kubelet is silent has no
    exporter that answers.
    """
    reader = WorldReader(world.cluster)
    exporters: dict[str, tuple[GpuExporter, FakeDevices, FixedClock]] = {}
    for step in range(steps):
        world.run_until(EPOCH + step * STEP_SECONDS)
        now, by_node = world.clock.now(), dict[str, list[DeviceSample]]()
        for sample in world.devices.sample():
            by_node.setdefault(sample.node, []).append(sample)
        page: dict[Series, float] = {}
        for node, samples in by_node.items():
            if node not in exporters:
                devices, clock = FakeDevices(), FixedClock(now)
                chosen = GpuExporterSettings(node=node, compat=(), only=kept, is_alone=True)
                exporters[node] = (
                    GpuExporter(devices, clock, chosen, agents=over_grant_families),
                    devices,
                    clock,
                )
            exporter, devices, clock = exporters[node]
            clock.at = now
            devices.change(at=now, devices=tuple(samples))
            asyncio.run(exporter.refresh())
            _keep(
                page,
                b"".join(exporter.page.pieces),
                kept,
                {"instance": f"{node}:9400", "job": "gpu"},
            )
        families = cluster_families(
            take_snapshot(world, reader), now, ClusterExporterSettings(compat=())
        )
        _keep(
            page,
            b"".join(render_page(families)),
            kept,
            {"instance": "exporter:9401", "job": "cluster"},
        )
        yield page


def _keep(
    page: dict[Series, float], text: bytes, kept: frozenset[str], target: Mapping[str, str]
) -> None:
    for sample in parse_page(text.decode()).samples:
        if sample.name in kept:
            page[sample.name, tuple({**sample.labels, **target}.items())] = sample.value
