"""The metrics reference is up to date, and contains every series of the pages with its labels."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from fairlead.apps.configuration.counters_file import built_in_counters
from fairlead.wire.metrics.prom_text import parse_page

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted((ROOT / "tests" / "golden" / "metrics").glob("*.prom"))
TARGET_LABELS = {"job", "instance", "namespace", "pod", "container", "service", "endpoint"}


def reference(name: str = "docs_metrics") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = reference()


def test_the_reference_is_fresh() -> None:
    assert REFERENCE.FILE.read_text(encoding="utf-8") == REFERENCE.metrics_text(), (
        "stale: run `python tools/docs_metrics.py`"
    )


def test_the_list_of_dcgms_fields_is_fresh() -> None:
    listed = reference("docs_dcgm")
    assert listed.FILE.read_text(encoding="utf-8") == listed.dcgm_text(), (
        "stale: run `python tools/docs_dcgm.py`"
    )


def test_there_are_pages_to_hold_against_it() -> None:
    assert len(PAGES) >= 9


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_series_of_a_page_is_documented_with_its_labels(page: Path) -> None:
    labels_of: dict[str, set[str]] = {}
    for metric in REFERENCE.all_names():
        labels_of.setdefault(metric.name, set()).update(metric.labels)
    counters = {counter.name for counter in built_in_counters().counters}
    for sample in parse_page(page.read_text(encoding="utf-8")).samples:
        if sample.name in counters:
            continue
        assert sample.name in labels_of, f"`{sample.name}` is not in docs/reference/metrics.md"
        assert set(sample.labels) <= labels_of[sample.name]


def test_names_and_types_keep_the_rules() -> None:
    for metric in REFERENCE.all_names():
        if not metric.name.startswith("fairlead_"):
            continue
        assert (metric.type == "counter") == metric.name.endswith("_total"), metric.name
        assert not metric.name.endswith(("_count", "_sum", "_bucket")), metric.name
        assert not (TARGET_LABELS | {"node"}) & set(metric.labels), (
            f"{metric.name}: docs/spec/telemetry.md#metric-families-and-naming-rules"
        )
        assert metric.help.rstrip(").").strip(), metric.name


def test_what_stands_on_a_node_names_the_node() -> None:
    """docs/spec/telemetry.md#metric-families-and-naming-rules,
    docs/spec/telemetry.md#device-metrics, docs/spec/telemetry.md#metrics-of-the-exporter-itself:
    one label joins the cards, containers, exporters and agents of a node.
    """
    sections = (
        *REFERENCE.GPU,
        *REFERENCE.AGENT,
        ("", "", REFERENCE.cluster_exporter_metrics.NAMES),
    )
    native = [
        metric
        for _, _, metrics in sections
        for metric in metrics
        if metric.name.startswith("fairlead_")
    ]
    assert len(native) > 50
    assert not [metric.name for metric in native if "node_name" not in metric.labels]
