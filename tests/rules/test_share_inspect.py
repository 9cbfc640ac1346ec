"""Which pods hold which shared cards: the contents of `kubectl inspect cgpu` and of the extender's
`/inspect`.

See docs/spec/gpu-sharing.md#inspect.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import structs
from tests.cli.api_objects import Object, node, pod, snapshot_of

from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.inspection import InspectedNode
from fairlead.rules.sharing.inspect import inspect_shares, unknown_node
from fairlead.rules.sharing.ledger import Ledger, ledger_of
from fairlead.wire.sharing.inspect import render_inspection

LABELS = {"cgpu": "true", "fairlead.io/gpu-isolation": "guard"}


def two_cards(*slots: dict[str, Any], labels: dict[str, str] | None = None) -> Object:
    cards = [
        {
            "index": index,
            "uuid": f"GPU-{index}",
            "memoryMiB": 16130,
            "units": 15,
            "mode": "shared",
            **slot,
        }
        for index, slot in enumerate(slots)
    ]
    notes = {"fairlead.io/gpus": json.dumps(cards), "fairlead.io/gpu-mem-unit": "GiB"}
    capacity = {"aliyun.com/gpu-mem": str(15 * len(slots)), "aliyun.com/gpu-count": str(len(slots))}
    return node(
        "n1", "10.0.0.1", capacity, labels=LABELS if labels is None else labels, annotations=notes
    )


def tenant(
    name: str, units: int, grants: str = "", *, namespace: str = "default", deleted: bool = False
) -> Object:
    notes = {"fairlead.io/gpu-allocation": grants} if grants else None
    made = pod(
        name,
        "n1",
        {"aliyun.com/gpu-mem": str(units)},
        namespace=namespace,
        annotations=notes,
        deleted=deleted,
    )
    made["metadata"]["uid"] = f"uid-{name}"
    return made


def on(card: int, units: int) -> str:
    return json.dumps(
        {"main": [{"uuid": f"GPU-{card}", "index": card, "units": units, "mib": 4301}]}
    )


def inspected(
    described: Object, *pods: Object, readings: list[GpuReading] | None = None
) -> InspectedNode:
    (found,) = inspect_shares(ledger_of(snapshot_of([described], pods)), readings=readings or [])
    return found


class TestCounting:
    def test_a_card_has_its_holders_and_the_node_their_sum(self) -> None:
        found = inspected(
            two_cards({}, {}),
            tenant("b", 4, on(1, 4)),
            tenant("a", 4, on(1, 4)),
            tenant("c", 2, on(0, 2)),
        )
        assert [(card.used, [each.name for each in card.pods]) for card in found.cards] == [
            (2, ["c"]),
            (8, ["a", "b"]),
        ]
        assert (found.used, found.total, found.pending) == (10, 30, ())

    def test_a_pod_whose_card_is_unknown_is_pending_and_counts(self) -> None:
        found = inspected(
            two_cards({}, {}),
            tenant("lost", 3),
            tenant("elsewhere", 2, on(7, 2)),
            tenant("broken", 1, "{"),
        )
        assert {each.name: each.used for each in found.pending} == {
            "lost": 3,
            "elsewhere": 2,
            "broken": 1,
        }
        assert (found.used, [card.used for card in found.cards]) == (6, [0, 0])

    def test_a_pod_on_two_cards_shows_on_each_what_it_has_there(self) -> None:
        grants = {
            "main": [
                {"uuid": f"GPU-{card}", "index": card, "units": 3, "mib": 3226} for card in (0, 1)
            ]
        }
        found = inspected(two_cards({}, {}), tenant("wide", 6, json.dumps(grants)))
        assert [card.pods[0].used for card in found.cards] == [3, 3]

    def test_a_terminating_pod_is_listed_and_counts(self) -> None:
        found = inspected(two_cards({}), tenant("leaving", 4, on(0, 4), deleted=True))
        assert (found.used, found.cards[0].pods[0].is_terminating) == (4, True)

    def test_without_an_inventory_the_nodes_units_are_divided(self) -> None:
        plain = node(
            "n1",
            "10.0.0.1",
            {"aliyun.com/gpu-mem": "31", "aliyun.com/gpu-count": "2"},
            labels=LABELS,
        )
        found = inspected(plain)
        assert ([card.total for card in found.cards], found.total) == ([15, 15], 31)

    def test_a_card_that_is_still_held_whole_has_the_size_that_it_will_share(self) -> None:
        """The reference plugin does the same: it offers the memory while a pod holds the whole card
        (document 001).
        """
        found = inspected(two_cards({"mode": "draining"}, {}))
        assert ([card.total for card in found.cards], found.total, found.used, found.unhealthy) == (
            [15, 15],
            30,
            0,
            0,
        )
        assert ([card.reason for card in found.cards], found.mode) == (["draining", ""], "shared")

    def test_a_node_whose_cards_are_all_held_whole_is_draining(self) -> None:
        found = inspected(two_cards({"mode": "draining"}, {"mode": "draining"}))
        assert ([card.total for card in found.cards], found.mode) == ([15, 15], "draining")

    def test_a_card_that_is_whole_already_has_nothing_to_share(self) -> None:
        sharer = tenant("last", 4, on(0, 4))
        found = inspected(
            two_cards({"mode": "draining"}, {"mode": "exclusive"}, labels={"cgpu": "false"}), sharer
        )
        assert ([card.total for card in found.cards], found.total) == ([15, 0], 15)

    def test_a_card_that_drains_of_its_sharers_keeps_its_size(self) -> None:
        found = inspected(
            two_cards({"mode": "draining"}, labels={"cgpu": "false"}), tenant("last", 4, on(0, 4))
        )
        assert (found.cards[0].total, found.used, found.mode) == (15, 4, "draining")

    def test_a_card_that_an_operator_took_out_is_unhealthy_and_keeps_its_size(self) -> None:
        snapshot = structs.replace(snapshot_of([two_cards({}, {})]), withheld={"n1": (1,)})
        (found,) = inspect_shares(ledger_of(snapshot))
        assert [(card.is_healthy, card.reason, card.total) for card in found.cards] == [
            (True, "", 15),
            (False, "taken out of use", 15),
        ]

    def test_a_node_that_shares_nothing_is_left_out(self) -> None:
        plain = node("n1", "10.0.0.1", {"nvidia.com/gpu": "4", "aliyun.com/gpu-mem": "0"})
        assert inspect_shares(ledger_of(snapshot_of([plain]))) == []


class TestNames:
    def test_only_those_that_were_named_in_order(self) -> None:
        ledger = ledger_of(
            snapshot_of(
                [
                    {**two_cards({}), "metadata": {**two_cards({})["metadata"], "name": name}}
                    for name in ("c", "a", "b")
                ]
            )
        )
        assert [each.name for each in inspect_shares(ledger)] == ["a", "b", "c"]
        assert [each.name for each in inspect_shares(ledger, ["c", "a", "x"])] == ["a", "c"]

    def test_a_name_that_no_node_has(self) -> None:
        assert unknown_node(Ledger(), ["x"]) == 'node "x" not found'
        assert unknown_node(ledger_of(snapshot_of([two_cards({})])), ["n1"]) == ""


def test_the_document_of_one_pod() -> None:
    reading = GpuReading(
        "n1",
        0,
        "GPU-0",
        holders=(GpuHolder("default", "p", "main", "share", memory_used_mib=3193.0),),
    )
    sick = {"health": "Unhealthy", "reason": "XID 48", "model": "Tesla V100-SXM2-16GB"}
    found = inspected(
        two_cards(sick), tenant("p", 4, on(0, 4)), tenant("lost", 1), readings=[reading]
    )
    assert render_inspection([found]) == {
        "nodes": [
            {
                "name": "n1",
                "totalGPU": 15,
                "usedGPU": 5,
                "devs": [
                    {
                        "id": 0,
                        "totalGPU": 15,
                        "usedGPU": 4,
                        "pods": [
                            {
                                "name": "p",
                                "namespace": "default",
                                "usedGPU": 4,
                                "uid": "uid-p",
                                "containers": {"main": {"units": 4, "mib": 4301, "core": 0}},
                                "state": "bound",
                                "terminating": False,
                                "usedMiB": 3193.0,
                            }
                        ],
                        "uuid": "GPU-0",
                        "model": "Tesla V100-SXM2-16GB",
                        "memoryMiB": 16130,
                        "health": "Unhealthy",
                        "reason": "XID 48",
                        "coreTotal": 0,
                        "coreUsed": 0,
                    }
                ],
                "unit": "GiB",
                "mode": "shared",
                "isolation": {
                    "provider": "guard",
                    "memory": "cooperative",
                    "compute": "soft",
                    "fault": "shared",
                },
                "overcommitted": 0,
                "pending": [
                    {
                        "name": "lost",
                        "namespace": "default",
                        "usedGPU": 1,
                        "uid": "uid-lost",
                        "containers": {},
                        "state": "bound",
                        "terminating": False,
                        "usedMiB": None,
                    }
                ],
            }
        ]
    }
