"""What a pod requests of shared GPUs: sums, the maximum rule of init containers, splits, and what
each container is granted.
"""

from __future__ import annotations

import pytest
from tests.rules.sharing import cards, container, ledger, node, pod

from fairlead.model.refusal import Refusal
from fairlead.rules.holding.booked import booked_grants
from fairlead.rules.holding.need import gpu_need
from fairlead.rules.holding.units import card_units, grant_mib, unit_of
from fairlead.rules.nodes.status import ShareMode, share_mode

SIDECAR = container("side", 2, restartable=True)
INIT = container("init", 6)


@pytest.mark.parametrize(
    ("memory_mib", "unit", "units", "asked", "mib"),
    [
        pytest.param(16130, "GiB", 15, 4, 4301, id="V100 of document 001"),
        pytest.param(16129, "GiB", 15, 4, 4301, id="V100, the least that gives the same"),
        pytest.param(16132, "GiB", 15, 4, 4301, id="V100, the most that gives the same"),
        pytest.param(15079, "GiB", 14, 4, 4308, id="T4 of document 003"),
        pytest.param(143150, "GiB", 139, 4, 4119, id="H200"),
        pytest.param(15079, "MiB", 15079, 4000, 4000, id="counted in MiB"),
    ],
)
def test_units_and_grants(memory_mib: int, unit: str, units: int, asked: int, mib: int) -> None:
    assert card_units(memory_mib, unit) == units
    assert grant_mib(memory_mib, asked, units) == mib
    assert grant_mib(memory_mib, 1, units) * units <= memory_mib


def test_the_unit_of_a_node_is_what_it_declares() -> None:
    assert unit_of(node(**{"fairlead.io/gpu-mem-unit": "MiB"}), 139) == "MiB"
    assert unit_of(node(), 139) == "GiB", "an H200 in GiB has more than 100 units"
    assert unit_of(node(), 15079) == "MiB"


@pytest.mark.parametrize(
    ("asker", "units"),
    [
        pytest.param(
            pod(containers=[container("a", 3), container("b", 1), container("c")]),
            4,
            id="containers add up",
        ),
        pytest.param(pod(units=4, init_containers=(INIT,)), 6, id="a larger init container"),
        pytest.param(pod(units=8, init_containers=(INIT,)), 8, id="a smaller init container"),
        pytest.param(pod(units=4, init_containers=(SIDECAR,)), 6, id="a sidecar runs beside"),
        pytest.param(pod(units=4, init_containers=(INIT, SIDECAR)), 6, id="all of them"),
        pytest.param(pod(units=0, init_containers=(INIT,)), 6, id="init alone"),
        pytest.param(pod(units=8, cards=2), 4, id="split over two cards"),
    ],
)
def test_need_on_each_card(asker: object, units: int) -> None:
    need = gpu_need(asker)  # type: ignore[arg-type]
    assert (need.units, need.fault) == (units, "")


def test_an_init_container_shares_the_card_and_only_its_excess_is_booked() -> None:
    asker = pod(units=4, init_containers=(INIT,))
    made = ledger()
    grants = made.reserve(asker, "n")
    assert not isinstance(grants, Refusal)
    assert cards(grants) == {"main": [(0, 4)], "init": [(0, 6)]}, (
        "both name the card, each with what the kubelet asks"
    )
    assert made.nodes["n"].cards[0].used == 6
    assert cards(made.tenants[asker.uid].booked) == {"main": [(0, 4)], "init": [(0, 2)]}


def test_a_wish_lowers_the_limit_and_never_raises_it() -> None:
    asker = pod(
        containers=[container("a", 4), container("b", 2)], memory_limits_mib={"a": 3500, "b": 99999}
    )
    grants = ledger().reserve(asker, "n")
    assert not isinstance(grants, Refusal)
    assert grants["a"][0].memory_mib == 3500
    assert grants["b"][0].memory_mib == (15 * 1024 + 770) * 2 // 15


@pytest.mark.parametrize("units", [3, 5])
def test_grants_that_are_not_the_limit_are_not_usable(units: int) -> None:
    from tests.rules.sharing import placed

    assert booked_grants(placed(pod(units=4), "n", {"main": [(0, units)]})) == {}
    assert booked_grants(placed(pod(units=4), "n", {"main": [(0, 4)], "other": [(1, 4)]})) == {}
    assert booked_grants(placed(pod(units=4), "n", {"main": [(0, 4)]})) != {}


@pytest.mark.parametrize(
    ("labels", "is_shared", "is_conflict"),
    [
        ({"cgpu": "true"}, True, False),
        ({"gpushare": "true"}, True, False),
        ({"ack.node.gpu.schedule": "core_mem"}, True, False),
        ({"ack.node.gpu.schedule": "default", "gpushare": "true"}, False, True),
        ({"cgpu": "true", "ack.node.gpu.schedule": "default", "gpushare": "false"}, True, True),
        ({"cgpu": "yes", "gpushare": "true"}, True, False),
        ({"cgpu": "true", "gpushare": "true"}, True, False),
        ({}, False, False),
    ],
)
def test_which_label_decides(labels: dict[str, str], is_shared: bool, is_conflict: bool) -> None:
    mode = share_mode(labels)
    assert (mode.is_shared, bool(mode.conflict)) == (is_shared, is_conflict)


def test_the_words_of_a_conflict_name_all_that_lost() -> None:
    mode = share_mode(
        {
            "cgpu": "true",
            "ack.node.gpu.schedule": "default",
            "gpushare": "false",
            "ack.node.gpu.placement": "spread",
        }
    )
    message = (
        "label cgpu=true overrides ack.node.gpu.schedule=default and gpushare=false: the GPUs of "
        "this node are shared"
    )
    assert mode == ShareMode(True, "spread", message)
