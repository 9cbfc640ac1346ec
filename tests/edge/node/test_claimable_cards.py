"""Which cards ResourceClaims can name, from API servers of each version, and what is kept while the
API server does not answer.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fairlead.edge.kube.api_failure import NotServed
from fairlead.edge.node.claimable_cards import NodeSlices
from fairlead.errors import OutsideError
from fairlead.model.devices.kubelet import ClaimableCard
from fairlead.wire.kube.resource_slices import PublishedCards, WireSlice, newest_cards, parse_slice

UUID, MIG = {"string": "GPU-a"}, {"string": "MIG-b"}
DEVICES = [
    {
        "name": "gpu-0",
        "attributes": {
            "uuid": UUID,
            "type": {"string": "gpu"},
            "driverVersion": {"version": "580.1.0"},
        },
    },
    {
        "name": "gpu-0-mig",
        "attributes": {"gpu.nvidia.com/uuid": MIG, "gpu.nvidia.com/profile": {"string": "1g.5gb"}},
    },
    {"name": "nameless", "attributes": {"index": {"int": 0}}},
    {"name": "bare"},
]
CARDS = (
    ClaimableCard("gpu.nvidia.com", "n1", "gpu-0", "GPU-a"),
    ClaimableCard("gpu.nvidia.com", "n1", "gpu-0-mig", "MIG-b", "1g.5gb"),
)


def slice_of(devices: list[dict[str, Any]]) -> WireSlice:

    body = {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "n1",
            "pool": {"name": "n1"},
            "devices": devices,
        },
    }
    return msgspec.json.decode(json.dumps(body), type=WireSlice)


def test_a_device_is_the_card_of_its_uuid_whatever_the_version() -> None:
    assert parse_slice(slice_of(DEVICES)) == PublishedCards("gpu.nvidia.com", "n1", 0, CARDS)
    older = [
        {"name": each["name"], "basic": {"attributes": each["attributes"]}}
        for each in DEVICES
        if "attributes" in each
    ]
    assert parse_slice(slice_of(older)).cards == CARDS


def test_of_a_pool_that_is_published_anew_the_newest_generation_counts() -> None:
    def part(generation: int, device: str, uuid: str, pool: str = "n1") -> PublishedCards:
        return PublishedCards("d", pool, generation, (ClaimableCard("d", pool, device, uuid),))

    parts = [
        part(1, "gpu-0", "GPU-old"),
        part(2, "gpu-0", "GPU-new"),
        part(2, "gpu-1", "GPU-b"),
        part(1, "gpu-2", "GPU-c"),
    ]
    parts.append(part(1, "gpu-0", "GPU-other", pool="n2"))
    for order in (parts, parts[::-1]):
        assert {key[1:]: card.uuid for key, card in newest_cards(order).items()} == {
            ("n1", "gpu-0"): "GPU-new",
            ("n1", "gpu-1"): "GPU-b",
            ("n2", "gpu-0"): "GPU-other",
        }
    body = {
        "metadata": {"name": "s"},
        "spec": {"driver": "d", "pool": {"name": "n1", "generation": 7}, "devices": []},
    }
    assert parse_slice(msgspec.json.decode(json.dumps(body), type=WireSlice)).generation == 7


class Listing:
    def __init__(self, rows: dict[str, Any]) -> None:
        self.rows = rows


class Api:
    """An API server that serves one version of ResourceSlices; while `is_silent` it answers no
    request.
    """

    def __init__(self, version: str) -> None:
        self.version, self.is_silent, self.asked = version, False, []

    async def list_all(self, reader: Any, selection: Any) -> Listing:
        self.asked.append((reader.resource.version, selection.fields))
        if self.is_silent:
            raise OutsideError("kubernetes", "no answer")
        if reader.resource.version != self.version:
            raise NotServed("kubernetes", "not served")
        return Listing({"s": PublishedCards("gpu.nvidia.com", "n1", 1, CARDS)})


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
async def test_the_newest_version_that_is_served_is_asked(version: str) -> None:
    api = Api(version)
    slices = NodeSlices(api, "n1")  # type: ignore[arg-type]
    assert await slices.look()
    assert slices.latest()["gpu.nvidia.com", "n1", "gpu-0"].uuid == "GPU-a"
    assert api.asked[-1] == (version, "spec.nodeName=n1")


async def test_what_was_reported_stays_and_silence_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api = Api("v1")
    slices = NodeSlices(api, "n1")  # type: ignore[arg-type]
    await slices.look()
    api.is_silent = True
    assert [await slices.look(), await slices.look()] == [False, False]
    assert len(slices.latest()) == 2 and len(caplog.records) == 1
    assert not await NodeSlices(Api("v9"), "n1").look()  # type: ignore[arg-type]
    assert "no ResourceSlices" in caplog.text
