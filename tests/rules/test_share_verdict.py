"""Every sentence of a refusal, word for word, and whether eviction could help."""

from __future__ import annotations

import pytest
from tests.rules.sharing import container, ledger, node, placed, pod

from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import Verdict
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.sharing.ledger import Ledger, ledger_of
from fairlead.rules.sharing.placement import SharePolicies

DRAINING = {"mode": "draining", "health": "Unhealthy"}
SICK = {"health": "Unhealthy", "reason": "XID 48"}
TWO_PARTS = [container("a", 12), container("b", 12)]
GIB_OF = "Insufficient aliyun.com/gpu-mem on one GPU: need {} GiB, largest free {} GiB"

IN_MIB = node("n", (15079,), core=True, **{"fairlead.io/gpu-mem-unit": "MiB"})


def in_mib(shared: Node) -> Ledger:
    made = Ledger(SharePolicies(unit="MiB"))
    made.set_node(shared)
    return made


@pytest.mark.parametrize(
    ("made", "asker", "reason", "is_final"),
    [
        pytest.param(
            ledger(used={("n", 0): 13, ("n", 1): 14}),
            pod(units=4),
            GIB_OF.format(4, 2),
            False,
            id="free memory on two cards does not add up",
        ),
        pytest.param(
            ledger(used={("n", 0): 13}),
            pod(units=8, cards=2),
            "Insufficient aliyun.com/gpu-mem: need 4 GiB on each of 2 GPUs, 1 GPU has it",
            False,
            id="several cards",
        ),
        pytest.param(
            ledger(node(units=(15, 15, 15)), used={("n", 0): 13, ("n", 1): 14, ("n", 2): 15}),
            pod(units=8, cards=2),
            "Insufficient aliyun.com/gpu-mem: need 4 GiB on each of 2 GPUs, 0 GPUs have it",
            False,
            id="several cards and none has it",
        ),
        pytest.param(
            ledger(node(core=True, units=(15,)), used={}),
            pod(units=4, core=30),
            None,
            False,
            id="core that is there",
        ),
        pytest.param(
            ledger(),
            pod(units=20),
            "need 20 GiB on one GPU, largest has 15 GiB",
            True,
            id="never fits",
        ),
        pytest.param(
            ledger(), pod(units=8, cards=4), "need 4 GPUs, node has 2", True, id="too few cards"
        ),
        pytest.param(
            ledger(),
            pod(units=7, cards=2),
            "gpu-mem 7 cannot be split over 2 GPUs",
            True,
            id="no even split",
        ),
        pytest.param(
            ledger(), pod(units=0, core=30), "gpu-core needs gpu-mem", True, id="core alone"
        ),
        pytest.param(
            ledger(),
            pod(units=4, core=7),
            "gpu-core 7 is not a multiple of 5 from 5 to 100",
            True,
            id="malformed core",
        ),
        pytest.param(
            ledger(),
            pod(labels={"aliyun.com/gpu-count": "x"}),
            "label aliyun.com/gpu-count=x is not a number of GPUs",
            True,
            id="a word",
        ),
        pytest.param(
            ledger(),
            pod(labels={"aliyun.com/gpu-count": "0"}),
            "label aliyun.com/gpu-count=0 is not a number of GPUs",
            True,
            id="no card",
        ),
        pytest.param(
            ledger(),
            pod(annotations={"fairlead.io/gpu-placement": "tight"}),
            "annotation fairlead.io/gpu-placement=tight is neither binpack nor spread",
            True,
            id="an unknown placement",
        ),
        pytest.param(
            ledger(),
            pod(annotations={"fairlead.io/gpu-split": "yes"}),
            "annotation fairlead.io/gpu-split=yes is not per-container",
            True,
            id="an unknown split",
        ),
        pytest.param(
            ledger(node(labels={})),
            pod(),
            "node does not share GPUs (label cgpu=true missing)",
            True,
            id="a node of whole cards",
        ),
        pytest.param(
            ledger(node(units=())),
            pod(),
            "need 1 GPU, node has 0",
            True,
            id="a label on a node without cards",
        ),
        pytest.param(
            ledger(node(slots={0: SICK, 1: SICK})),
            pod(),
            "all 2 GPUs unhealthy",
            True,
            id="all cards failed",
        ),
        pytest.param(
            ledger(node(units=(15,), slots={0: SICK})),
            pod(),
            "the only GPU is unhealthy",
            True,
            id="the card failed",
        ),
        pytest.param(
            ledger(node(slots={0: DRAINING, 1: DRAINING})),
            pod(),
            "GPU 0,1 draining from exclusive use",
            False,
            id="cards that drain",
        ),
        pytest.param(
            ledger(node(slots={0: {"mode": "exclusive"}, 1: SICK})),
            pod(),
            "GPU 0 draining from exclusive use",
            False,
            id="not switched yet",
        ),
        pytest.param(
            ledger(node(units=(15, 79), slots={1: SICK})),
            pod(units=20),
            "need 20 GiB on one GPU, largest healthy has 15 GiB",
            True,
            id="the large card is unhealthy",
        ),
        pytest.param(
            ledger(node(units=(15, 79), slots={1: DRAINING})),
            pod(units=20),
            "GPU 1 draining from exclusive use",
            False,
            id="it drains",
        ),
        pytest.param(
            ledger(node(units=(8, 40)), used={("n", 1): 40}),
            pod(units=20),
            GIB_OF.format(20, 8),
            False,
            id="the large card is full",
        ),
        pytest.param(
            ledger(node(units=(15, 15)), used={("n", 0): 3, ("n", 1): 5}),
            pod(containers=TWO_PARTS, annotations={"fairlead.io/gpu-split": "per-container"}),
            GIB_OF.format(12, 10),
            False,
            id="the second container finds no card",
        ),
        pytest.param(
            in_mib(IN_MIB),
            pod(units=15080),
            "need 15080 MiB on one GPU, largest has 15079 MiB",
            True,
            id="a cluster that counts in MiB",
        ),
        pytest.param(
            in_mib(IN_MIB), pod(units=15079), None, True, id="it takes what is asked in its unit"
        ),
        pytest.param(
            ledger(IN_MIB),
            pod(),
            "node counts aliyun.com/gpu-mem in MiB, the cluster in GiB",
            True,
            id="a node that counts in MiB",
        ),
        pytest.param(
            ledger(IN_MIB),
            pod(core=30),
            "node counts aliyun.com/gpu-mem in MiB, the cluster in GiB",
            True,
            id="a node that counts in MiB, asked with core percent",
        ),
        pytest.param(
            in_mib(node()),
            pod(),
            "node counts aliyun.com/gpu-mem in GiB, the cluster in MiB",
            True,
            id="a node that counts in GiB",
        ),
        pytest.param(
            Ledger(),
            pod(),
            "node not yet known to the GPU share scheduler",
            False,
            id="an unknown node",
        ),
    ],
)
def test_why_not(made: Ledger, asker: Pod, reason: str | None, is_final: bool) -> None:
    assert made.verdict_on("n", asker) == (None if reason is None else Verdict(reason, is_final))
    answer = made.filter(asker, ["n"])
    wanted = {} if reason is None else {"n": reason}
    assert (answer.hopeless if is_final else answer.failed) == wanted
    assert answer.passed == (["n"] if reason is None else [])


def core_node(units: tuple[int, ...] = (15,)) -> Node:
    return node(units=units, core=True)


@pytest.mark.parametrize(
    ("held", "asker", "verdict"),
    [
        (80, pod(units=2, core=20), None),
        (
            80,
            pod(units=2, core=30),
            Verdict(
                (
                    "Insufficient aliyun.com/gpu-core.percentage on one "
                    "GPU: need 30, largest free 20"
                ),
                False,
            ),
        ),
        (
            80,
            pod(containers=[container("a", 2, 60), container("b", 2, 60)]),
            Verdict("need 120 of aliyun.com/gpu-core.percentage on one GPU, largest has 100", True),
        ),
    ],
)
def test_core_percent_is_counted_beside_memory(
    held: int, asker: Pod, verdict: Verdict | None
) -> None:
    made = ledger(core_node())
    made.reserve(pod("other", 1, core=held), "n")
    assert made.verdict_on("n", asker) == verdict


def test_a_node_that_offers_no_core_never_will() -> None:
    verdict = Verdict(
        "Insufficient aliyun.com/gpu-core.percentage on one GPU: need 30, largest free 0", True
    )
    assert ledger().verdict_on("n", pod(core=30)) == verdict


def test_core_on_several_cards() -> None:
    made = ledger(core_node((15, 15)))
    made.reserve(pod("other", 1, core=90), "n")
    reason = "Insufficient aliyun.com/gpu-core.percentage: need 20 on each of 2 GPUs, 1 GPU has it"
    assert made.verdict_on("n", pod(units=4, core=40, cards=2)) == Verdict(reason, False)


def test_an_operator_takes_a_card_out_and_gives_it_back() -> None:
    made = ledger(used={("n", 1): 13})
    made.withhold("n", [0])
    assert made.verdict_on("n", pod()) == Verdict(GIB_OF.format(4, 2), False)
    made.withhold("n", [])
    assert made.verdict_on("n", pod()) is None


def test_two_cards_that_claim_one_uuid_take_no_pod() -> None:
    made = ledger(node(units=(15, 15, 8), slots={1: {"uuid": "GPU-n-0"}}))
    assert made.verdict_on("n", pod(units=9)) == Verdict(
        "need 9 GiB on one GPU, largest healthy has 8 GiB", True
    )
    assert made.verdict_on("n", pod(units=8)) is None


def test_a_terminating_pod_keeps_its_memory_until_it_has_finished() -> None:
    made = ledger(node(units=(15,)))
    leaving = placed(pod("old", 12), "n", {"main": [(0, 12)]}, deleted_at=5.0)
    made.set_pod(leaving)
    assert made.verdict_on("n", pod()) == Verdict(GIB_OF.format(4, 3), False)
    made.set_pod(placed(pod("old", 12), "n", {"main": [(0, 12)]}, deleted_at=5.0, phase="Failed"))
    assert made.verdict_on("n", pod()) is None


def test_a_pod_that_asks_for_none_of_it_goes_anywhere() -> None:
    assert ledger(node(labels={})).filter(pod(units=0), ["n"]).passed == ["n"]


def test_a_node_of_another_unit_takes_no_pod_however_the_question_comes() -> None:
    """A pod's number counts the cluster's unit, of which there is one
    (docs/spec/gpu-sharing.md#units-and-the-proportional-grant). On a node of another unit 4 GiB
    would be read as 4 MiB.
    """
    made = ledger(IN_MIB)
    why = "node counts aliyun.com/gpu-mem in MiB, the cluster in GiB"
    assert made.reserve(pod(), "n") == Refusal(why)
    assert made.adopt(pod(node="n")) == Refusal(why), "a pod placed by hand gets the reason"
    made.set_pod(placed(pod("held", 4), "n", {"main": [(0, 4)]}))
    assert made.nodes["n"].cards[0].used == 4, (
        "what is granted already is counted in the node's unit"
    )
    made.set_node(node("n", (15,)))
    assert made.verdict_on("n", pod()) is None, "the node was mended"


def test_questions_about_a_snapshot_are_asked_in_the_unit_of_its_nodes() -> None:
    assert ledger_of(ClusterSnapshot(nodes=(IN_MIB, node("cpu", (), labels={})))).filter(
        pod(units=4096), ["n"]
    ).passed == ["n"]
    mixed = ledger_of(ClusterSnapshot(nodes=(IN_MIB, node("gib"))))
    assert (
        mixed.filter(pod(), ["n", "gib"]).passed,
        list(mixed.filter(pod(), ["n", "gib"]).hopeless),
    ) == (["gib"], ["n"])
