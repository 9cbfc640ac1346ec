"""For any content of pods and nodes, by users or faulty programs, every node gets an answer,
nothing crashes, and no card is granted twice.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.rules.sharing.ledger import Ledger
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.rules.sharing.what_if import place_pods
from fairlead.rules.sharing.why import why_no_room
from fairlead.wire import names
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod

TEXTS = (
    st.sampled_from(
        [
            "",
            "0",
            "1",
            "2",
            "3",
            "x",
            "-1",
            "9" * 30,
            "true",
            "{}",
            "[]",
            "null",
            "spread",
            "per-container",
            "²",
            "1.5",
        ]
    )
    | st.text()
)
AMOUNTS = st.sampled_from(
    ["0", "1", "4", "7", "14", "15", "16", "1k", "9" * 40, "500m"]
) | st.integers(0, 30).map(str)
GRANTS = st.sampled_from(
    [
        '{"main":[{"uuid":"GPU-0","index":0,"units":4,"mib":4301}]}',
        '{"main":[{"uuid":"GPU-0","index":0,"units":9007199254740993}]}',
        '{"main":[{"uuid":"GPU-9","index":7,"units":4}],"other":[{"units":1}]}',
        '{"main":[{"index":1,"units":4,"core":900}]}',
        '{"main":null}',
        '{"main":[{"units":-4}]}',
    ]
)
POD_KEYS = [
    names.ANNOTATION_GPU_PLACEMENT,
    names.ANNOTATION_GPU_SPLIT,
    names.ANNOTATION_GPU_LIMIT_MIB,
    names.ANNOTATION_GPU_INDEX,
]
POD_KEYS += [names.ANNOTATION_REFERENCE_ALLOCATION]
ANNOTATIONS = st.dictionaries(st.sampled_from(POD_KEYS), TEXTS) | st.builds(
    lambda text: {names.ANNOTATION_ALLOCATION: text}, GRANTS
)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    def part(name: str) -> dict[str, Any]:
        keys = st.sampled_from(["aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "cpu"])
        limits = draw(st.dictionaries(keys, AMOUNTS, max_size=3))
        more = {"restartPolicy": "Always"} if draw(st.booleans()) else {}
        return {"name": name, "resources": {"limits": limits}, **more}

    labels = draw(st.dictionaries(st.just("aliyun.com/gpu-count"), TEXTS))
    metadata = {
        "name": "p",
        "namespace": "d",
        "uid": draw(st.sampled_from("abc")),
        "labels": labels,
        "annotations": draw(ANNOTATIONS),
    }
    spec = {
        "containers": [part("main"), *([part("other")] if draw(st.booleans()) else [])],
        "initContainers": [part("init")] if draw(st.booleans()) else None,
        "nodeName": draw(st.sampled_from(["", "", "n", "gone"])),
        "priority": draw(st.sampled_from([None, -5, 0, 7])),
    }
    status = {
        "phase": draw(st.sampled_from(["Pending", "Running", "Failed"])),
        "nominatedNodeName": draw(st.sampled_from([None, "n"])),
    }
    return parse_pod(
        msgspec.json.decode(
            msgspec.json.encode({"metadata": metadata, "spec": spec, "status": status}),
            type=WirePod,
        )
    )


SLOTS = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(-1, 3),
        "uuid": st.sampled_from(["GPU-0", "GPU-1", ""]),
        "units": st.integers(-3, 20),
        "memoryMiB": st.sampled_from([None, 0, 15079, -5]),
        "health": st.sampled_from(["Healthy", "Unhealthy", ""]),
        "mode": st.sampled_from(["shared", "exclusive", "draining", "odd"]),
    },
)


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    labels = draw(
        st.dictionaries(
            st.sampled_from(
                ["cgpu", "gpushare", "ack.node.gpu.schedule", "ack.node.gpu.placement"]
            ),
            TEXTS,
            max_size=2,
        )
    )
    labels |= {"cgpu": "true"} if draw(st.booleans()) else {}
    inventory = draw(
        TEXTS | st.lists(SLOTS, max_size=4).map(lambda slots: msgspec.json.encode(slots).decode())
    )
    amounts = draw(
        st.dictionaries(
            st.sampled_from(["aliyun.com/gpu-mem", "aliyun.com/gpu-count", "nvidia.com/gpu"]),
            AMOUNTS,
        )
    )
    metadata = {
        "name": "n",
        "labels": labels,
        "annotations": {names.ANNOTATION_GPUS: inventory, names.ANNOTATION_GPU_UNIT: draw(TEXTS)},
    }
    wire = {"metadata": metadata, "status": {"capacity": amounts, "allocatable": amounts}}
    return parse_node(msgspec.json.decode(msgspec.json.encode(wire), type=WireNode))


TWINS = parse_node(
    msgspec.json.decode(
        b'{"metadata":{"name":"n","annotations":{"fairlead.io/gpus":"[{},{}]"}}}', type=WireNode
    )
)


@example([TWINS], [], Pod("d", "p", "a"), set())
@given(
    st.lists(nodes(), min_size=1, max_size=2),
    st.lists(pods(), max_size=4),
    pods(),
    st.sets(st.integers(0, 3)),
)
def test_any_pod_on_any_node(
    reported: list[Node], known: list[Pod], asker: Pod, withheld: set[int]
) -> None:
    ledger = Ledger()
    for each in reported:
        ledger.set_node(each, withheld)
    for other in known:
        ledger.set_pod(other)
    asked = msgspec.structs.replace(asker, uid="asker", node="", nominated_node="")
    answer = ledger.filter(asked, ["n", "unknown"])
    assert sorted([*answer.passed, *answer.failed, *answer.hopeless]) == ["n", "unknown"]
    assert all(0 <= score <= 10 for _, score in ledger.prioritize(asked, ["n", "unknown"]))
    before = [(card.used, card.free) for card in ledger.nodes["n"].cards]
    plan_preemption(ledger, asked, {"n": Victims(("a",)), "unknown": Victims(())})
    assert (why_no_room(ledger, asked) == "") is ("n" in answer.passed)
    assert [(card.used, card.free) for card in ledger.nodes["n"].cards] == before, (
        "a question changes nothing"
    )
    grants = ledger.reserve(asked, "n")
    assert isinstance(grants, Refusal) is ("n" not in answer.passed)
    for card, (used, free) in zip(ledger.nodes["n"].cards, before, strict=True):
        assert card.free >= 0
        assert card.used - used <= free, "no more was given than was free"
    ledger.roll_back("asker")
    assert [(card.used, card.free) for card in ledger.nodes["n"].cards] == before
    place_pods(ledger, [asked])
