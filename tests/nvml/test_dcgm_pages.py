"""Fairlead's page compared with pages that dcgm-exporter printed on two real machines: which
families, in which order, of which types, with which labels.

The facts come from two published guides: an H100-20C with driver 580.95.05 that a pod holds, and a
free A100-10C with driver 580.126.09. Fairlead's page comes from the exporter's process, on a
library that plays the same card: what vGPUs do not support is not supported here either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.edge.kubelet.pod_resources import container, devices
from tests.edge.kubelet.wire_bytes import packed
from tests.nvml.exporting import exporting
from tests.nvml.pod_resources import kubelet
from tests.nvml.stub import MIB, StubState
from tests.waiting import wait_until

CARD = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION")
POD = ("container", "namespace", "pod")


class Page(NamedTuple):
    """A printed page: families in their order with their types, labels that all of them have, and
    those of single families.
    """

    families: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    other_labels: dict[str, tuple[str, ...]]


def gauges(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((f"DCGM_FI_DEV_{name}", "gauge") for name in names)


HELD = Page(
    (
        *gauges(
            "SM_CLOCK",
            "MEM_CLOCK",
            "MEMORY_TEMP",
            "GPU_UTIL",
            "MEM_COPY_UTIL",
            "ENC_UTIL",
            "DEC_UTIL",
            "XID_ERRORS",
        ),
        *gauges("FB_FREE", "FB_USED", "FB_RESERVED"),
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter"),
        *gauges("VGPU_LICENSE_STATUS"),
    ),
    (*CARD, *POD),
    {"DCGM_FI_DEV_XID_ERRORS": (*CARD, "container", "err_code", "err_msg", "namespace", "pod")},
)
FREE = Page(
    (
        *gauges(
            "SM_CLOCK",
            "MEM_CLOCK",
            "MEMORY_TEMP",
            "GPU_UTIL",
            "MEM_COPY_UTIL",
            "ENC_UTIL",
            "DEC_UTIL",
        ),
        *gauges("FB_FREE", "FB_USED", "FB_RESERVED", "VGPU_LICENSE_STATUS"),
    ),
    CARD,
    {},
)
OTHER_TYPES = {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": "gauge"}
"""A rate, in MB/s, is no counter: docs/spec/telemetry.md#dcgm-fields-from-nvml, and
docs/how-to/gpu-exporter.md.
"""
VGPU = {
    "0.clock.1": 1755,
    "0.clock.2": 1593,
    "0.gpu": 0,
    "0.memory": 0,
    "0.encoder": 0,
    "0.decoder": 0,
    "0.total": 20480 * MIB,
    "0.used": 0,
    "0.reserved": 717 * MIB,
    "0.name": "NVIDIA H100-20C",
    "0.bus": "00000000:03:00.0",
    "0.fv.82": "0:0",
}


def read(page: str) -> Page:
    families = tuple(
        (name, kind)
        for name, kind in re.findall(
            (
                r"^# TYPE "
                r"(DCGM_\w+) (\w+)$"
            ),
            page,
            re.M,
        )
    )
    labels = {
        name: tuple(re.findall(r'(\w+)="', text))
        for name, text in re.findall(r"^(DCGM_\w+)\{(.*)\} ", page, re.M)
    }
    return Page(
        families,
        labels["DCGM_FI_DEV_GPU_UTIL"],
        {name: each for name, each in labels.items() if each != labels["DCGM_FI_DEV_GPU_UTIL"]},
    )


@pytest.fixture(params=["held", "free"])
def beside(
    request: pytest.FixtureRequest, library: Path, state: StubState, tmp_path: Path
) -> Iterator[tuple[Page, Page]]:
    """dcgm-exporter's page and Fairlead's."""
    state.show_cards(1)
    state.say(VGPU)
    uuid = next(
        line.split(" ", 1)[1]
        for line in (state.folder / "state").read_text(encoding="utf-8").splitlines()
        if line.startswith("0.uuid ")
    )
    held = packed(
        (
            1,
            packed(
                (1, "cuda-75454ffb9f-jpwkc"),
                (2, "default"),
                (3, container("cuda", devices("nvidia.com/gpu", uuid))),
            ),
        )
    )
    flags = ("--compat=dcgm", "--kubernetes=true", "--kmsg=off")
    with (
        kubelet(tmp_path, held if request.param == "held" else b""),
        exporting(library, state, tmp_path, *flags) as exporter,
    ):
        wanted = (
            'pod="cuda-75454ffb9f-jpwkc"'
            if request.param == "held"
            else "DCGM_FI_DEV_VGPU_LICENSE_STATUS"
        )
        wait_until(
            "the page is whole",
            lambda: wanted in exporter.page() and "DCGM_FI_DEV_FB_FREE" in exporter.page(),
            60,
        )
        yield HELD if request.param == "held" else FREE, read(exporter.page())


def test_their_families_are_there_in_their_order_with_their_types(
    beside: tuple[Page, Page],
) -> None:
    theirs, own = beside
    wanted = [(name, OTHER_TYPES.get(name, kind)) for name, kind in theirs.families]
    absent = [name for name, _ in wanted if name not in dict(own.families)]
    assert absent == [name for name, _ in wanted if name in UNSUPPORTED]
    names = {name for name, _ in wanted}
    assert [each for each in own.families if each[0] in names] == [
        each for each in wanted if each[0] not in absent
    ]


UNSUPPORTED = ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",)
"""DCGM prints 0 for links that a card does not have. The driver reports that there are none, and
Fairlead leaves them out.
"""


def test_their_labels_are_fairleads_in_the_same_order(beside: tuple[Page, Page]) -> None:
    theirs, own = beside
    assert own.labels == theirs.labels
    assert {
        name: labels for name, labels in own.other_labels.items() if name in dict(theirs.families)
    } == theirs.other_labels
