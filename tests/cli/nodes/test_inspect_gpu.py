"""`kubectl inspect cgpu` prints what docs/spec/gpu-sharing.md#inspect shows, byte for byte, from
API objects that describe it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.api_objects import Object, node, pod, reading, snapshot_of
from tests.cli.command import Printed, run_command
from tests.examples import long_case
from tests.programs import run_program

from fairlead.cli.nodes.inspect_tables import details
from fairlead.errors import UserError
from fairlead.rules.sharing.inspect import inspect_shares
from fairlead.rules.sharing.ledger import ledger_of
from fairlead.wire.sharing.inspect import render_inspection

V100, T4 = "cn-hangzhou.192.168.2.167", "cn-zhangjiakou.192.168.3.184"
NOTEBOOKS = (
    "tf-notebook-3-86c48d4c7d-lk9h8",
    "tf-notebook-7cf4575d78-9gxzd",
    "tf-notebook-2-7b4d68d8f7-wxlff",
)


def shared(name: str, ip: str, units: int, gpus: int = 1, **more: Any) -> Object:
    """A node of the reference plug-in: totals, but no inventory."""
    capacity = {"aliyun.com/gpu-mem": str(units), "aliyun.com/gpu-count": str(gpus)}
    return node(name, ip, capacity, **{"labels": {"cgpu": "true"}, **more})


def reported(name: str, ip: str, sizes: list[int], unit: str = "GiB", **more: Any) -> Object:
    """A node with an inventory: the units of each of its GPUs."""
    slots = [
        {"index": index, "uuid": f"GPU-{name}-{index}", "units": units, "mode": "shared"}
        for index, units in enumerate(sizes)
    ]
    notes = {"fairlead.io/gpus": json.dumps(slots), "fairlead.io/gpu-mem-unit": unit}
    return shared(name, ip, sum(sizes), len(sizes), annotations=notes, **more)


def tenant(
    name: str,
    on: str,
    units: int,
    gpu: int | None = 0,
    namespace: str = "default",
    deleted: bool = False,
) -> Object:
    notes = {} if gpu is None else {"ALIYUN_COM_GPU_MEM_IDX": str(gpu)}
    made = pod(
        name,
        on,
        {"aliyun.com/gpu-mem": str(units)},
        namespace=namespace,
        annotations=notes,
        deleted=deleted,
    )
    made["metadata"]["uid"] = f"uid-{namespace}-{name}"
    return made


def inspect(flags: str, *objects: Object, program: str = "kubectl inspect cgpu") -> Printed:
    nodes = [each for each in objects if "containers" not in each["spec"]]
    pods = [each for each in objects if "containers" in each["spec"]]
    return run_command(flags, snapshot_of(nodes, pods), program)


class TestDocument001:
    def test_an_empty_card(self) -> None:
        assert (
            inspect("", shared(V100, "192.168.2.167", 15)).out
            == """\
NAME                       IPADDRESS      GPU0(Allocated/Total)  GPU Memory(GiB)
cn-hangzhou.192.168.2.167  192.168.2.167  0/15                   0/15
----------------------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
0/15 (0%)
"""
        )

    def test_two_pods_on_it(self) -> None:
        pods = [tenant(name, V100, 4) for name in ("app-3g-v1-1", "app-3g-v1-0")]
        assert (
            inspect("-d", shared(V100, "192.168.2.167", 15), *pods).out
            == """\
NAME:       cn-hangzhou.192.168.2.167
IPADDRESS:  192.168.2.167

NAME         NAMESPACE  GPU0(Allocated)
app-3g-v1-0  default    4
app-3g-v1-1  default    4
Allocated :  8 (53%)
Total :      15
--------------------------------------------------------

Allocated/Total GPU Memory In Cluster:  8/15 (53%)
"""
        )


class TestDocument003:
    def test_three_notebooks_on_a_t4(self) -> None:
        pods = [tenant(name, T4, 4) for name in NOTEBOOKS]
        assert (
            inspect("", reported(T4, "192.168.3.184", [14]), *pods).out
            == """\
NAME                          IPADDRESS      GPU0(Allocated/Total)  GPU Memory(GiB)
cn-zhangjiakou.192.168.3.184  192.168.3.184  12/14                  12/14
---------------------------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
12/14 (85%)
"""
        )
        assert (
            inspect("-d", reported(T4, "192.168.3.184", [14]), *pods).out
            == f"""\
NAME:       cn-zhangjiakou.192.168.3.184
IPADDRESS:  192.168.3.184

NAME                            NAMESPACE  GPU0(Allocated)
tf-notebook-2-7b4d68d8f7-wxlff  default    4
tf-notebook-3-86c48d4c7d-lk9h8  default    4
tf-notebook-7cf4575d78-9gxzd    default    4
Allocated :                     12 (85%)
Total :                         14
{"-" * 134}

Allocated/Total GPU Memory In Cluster:  12/14 (85%)
"""
        )


class TestManyNodes:
    OBJECTS = (
        reported("b-two", "10.0.0.2", [15, 39]),
        reported("a-one", "10.0.0.1", [14]),
        node("plain", "10.0.0.3", {"nvidia.com/gpu": "8"}),
        tenant("second", "b-two", 9, 1),
        tenant("first", "b-two", 5, 0, "team"),
        tenant("lost", "b-two", 2, None),
    )

    def test_missing_gpus_are_0_of_0_and_pending_has_its_column(self) -> None:
        assert (
            inspect("", *self.OBJECTS).out
            == """\
NAME   IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)
a-one  10.0.0.1   0/14                   0/0                                        0/14
b-two  10.0.0.2   5/15                   9/39                   2                   16/54
--------------------------------------------------
Allocated/Total GPU Memory In Cluster:
16/68 (23%)
"""
        )

    def test_blocks_are_an_empty_line_apart_and_their_dashes_are_the_first_ones(self) -> None:
        assert (
            inspect("-d", *self.OBJECTS).out
            == """\
NAME:       a-one
IPADDRESS:  10.0.0.1

NAME         NAMESPACE  GPU0(Allocated)
Allocated :  0 (0%)
Total :      14
----------

NAME:       b-two
IPADDRESS:  10.0.0.2

NAME         NAMESPACE  GPU0(Allocated)  GPU1(Allocated)  Pending(Allocated)
lost         default    0                0                2
second       default    0                9                0
first        team       5                0                0
Allocated :  16 (29%)
Total :      54
----------

Allocated/Total GPU Memory In Cluster:  16/68 (23%)
"""
        )

    def test_only_the_named_nodes(self) -> None:
        assert inspect("a-one", *self.OBJECTS).out.splitlines()[1:2] == [
            "a-one  10.0.0.1   0/14                   0/14"
        ]
        assert "b-two" not in inspect("-d a-one", *self.OBJECTS).out

    def test_wide_shows_what_keeps_the_pods_apart(self) -> None:
        guarded = reported(
            "n", "10.0.0.1", [15], labels={"cgpu": "true", "fairlead.io/gpu-isolation": "guard"}
        )
        assert inspect("-o wide", guarded).out.splitlines()[:2] == [
            (
                "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU Memory(GiB)  ISOLATION           "
                "MODE    UNHEALTHY"
            ),
            (
                "n     10.0.0.1   0/15                   0/15             guard(cooperative)  "
                "shared  0"
            ),
        ]
        assert inspect("-d -o wide", guarded).out.splitlines()[2:5] == [
            "ISOLATION:  guard(cooperative)",
            "MODE:       shared",
            "UNHEALTHY:  0",
        ]
        unsaid = reported("n", "10.0.0.1", [15])
        assert inspect("-o wide", unsaid).out.splitlines()[1].split()[4] == "unknown"

    def test_a_pod_on_two_cards_is_one_row(self) -> None:
        made = tenant("wide", "b", 6, None)
        grants = [
            {"uuid": f"GPU-b-{index}", "index": index, "units": 3, "mib": 3226} for index in (0, 1)
        ]
        made["metadata"]["annotations"] = {
            "fairlead.io/gpu-allocation": json.dumps({"main": grants})
        }
        assert inspect("-d", reported("b", "10.0.0.2", [15, 15]), made).out.splitlines()[4] == (
            "wide         default    3                3"
        )

    def test_a_terminating_pod_is_listed(self) -> None:
        out = inspect(
            "-d", reported("n", "10.0.0.1", [15]), tenant("leaving", "n", 4, deleted=True)
        ).out
        assert "leaving" in out
        assert "Allocated :  4 (26%)" in out

    def test_a_node_without_an_address(self) -> None:
        bare = shared("n", "", 15)
        bare["status"]["addresses"] = []
        assert inspect("", bare).out.splitlines()[1].split()[1] == "unknown"


class TestUnits:
    def test_an_h200_declared_in_gib_is_in_gib(self) -> None:
        lines = inspect(
            "", reported("h200", "10.0.0.1", [139] * 8), tenant("p", "h200", 4, 7)
        ).out.splitlines()
        assert lines[0].endswith("GPU Memory(GiB)")
        assert lines[1].split()[-2:] == ["4/139", "4/1112"]

    def test_mib_when_the_node_reports_it_or_a_card_has_more_units_than_gib_explain(self) -> None:
        assert "GPU Memory(MiB)" in inspect("", reported("n", "10.0.0.1", [15079], "MiB")).out
        assert "GPU Memory(MiB)" in inspect("", shared("n", "10.0.0.1", 15079)).out
        assert "GPU Memory(GiB)" in inspect("", shared("n", "10.0.0.1", 143)).out

    def test_nodes_of_both_units_are_shown_in_gib_rounded_down(self) -> None:
        mixed = [
            reported("a", "10.0.0.1", [15079], "MiB"),
            reported("b", "10.0.0.2", [15]),
            tenant("p", "a", 2047),
            tenant("q", "b", 4),
        ]
        lines = inspect("", *mixed).out.splitlines()
        assert lines[0].endswith("GPU Memory(GiB)")
        assert [line.split()[2:] for line in lines[1:3]] == [["1/14", "1/14"], ["4/15", "4/15"]]
        assert lines[-1] == "5/29 (17%)"


class TestNothingToShow:
    NOTHING = """\
NAME  IPADDRESS  GPU Memory(GiB)
---------------------------------------------------
Allocated/Total GPU Memory In Cluster:
0/0 (0%)
"""

    def test_no_node_shares_a_gpu(self) -> None:
        assert inspect("", node("plain", "10.0.0.3", {"nvidia.com/gpu": "8"})).out == self.NOTHING
        assert (
            inspect("plain", node("plain", "10.0.0.3", {"nvidia.com/gpu": "8"})).out == self.NOTHING
        )
        assert details([]) == "\nAllocated/Total GPU Memory In Cluster:  0/0 (0%)\n"

    def test_a_node_that_does_not_exist(self) -> None:
        with pytest.raises(UserError) as caught:
            inspect("x", shared("n", "10.0.0.1", 15))
        assert caught.value.what == 'node "x" not found'

    def test_an_output_format_that_does_not_exist(self) -> None:
        with pytest.raises(UserError, match="`yaml`"):
            inspect("-o yaml", shared("n", "10.0.0.1", 15))


def test_json_is_the_extenders_document_with_memory_in_use() -> None:
    described, held = reported("n", "10.0.0.1", [15]), tenant("p", "n", 4)
    seen = reading("n", 0, 15.0, 3.1, 50.0, [("default", "p")])
    snapshot = snapshot_of([described], [held], readings=[seen])
    printed = json.loads(run_command("inspect gpu -o json", snapshot, "fairlead").out)
    assert printed == render_inspection(inspect_shares(ledger_of(snapshot), readings=snapshot.gpus))
    assert printed["nodes"][0]["devs"][0]["pods"][0]["usedGPU"] == 4


@pytest.mark.parametrize(
    "script", ["run_kubectl_inspect", long_case("run_kubectl_inspect_gpushare")]
)
def test_a_plug_in_is_one_verb_and_speaks_like_kubectl(script: str, tmp_path: Path) -> None:
    code = f"from fairlead.run.programs import {script}; {script}()"
    command = [sys.executable, "-c", code, "nowhere"]
    ended = run_program(command, env={"HOME": str(tmp_path)}, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert 'Error: node "nowhere" not found\n' in ended.stderr


def test_the_checkout_has_the_scripts_that_kubectl_looks_for() -> None:
    here = str(Path(sys.executable).parent)
    assert shutil.which("kubectl-inspect-cgpu", path=here)
    assert shutil.which("kubectl-inspect-gpushare", path=here)


class TestDraining:
    """Document 001 in the printed order: the label is set while the pod with the whole card still
    runs.
    """

    def draining(self, *, is_shared: bool = True, gpus: int = 1) -> Object:
        """A node whose cards are still held in the old mode, as the device plugin leaves it: the
        old resource, with nothing allocatable.
        """
        slots = [
            {"index": index, "uuid": f"GPU-{index}", "units": 15, "mode": "draining"}
            for index in range(gpus)
        ]
        old = (
            {"nvidia.com/gpu": str(gpus)}
            if is_shared
            else {"aliyun.com/gpu-mem": str(15 * gpus), "aliyun.com/gpu-count": str(gpus)}
        )
        notes = {"fairlead.io/gpus": json.dumps(slots)}
        return node(
            V100,
            "192.168.2.167",
            old,
            allocatable=dict.fromkeys(old, "0"),
            labels={"cgpu": str(is_shared).lower()},
            annotations=notes,
        )

    def test_it_shows_for_which_mode_a_card_drains_and_leaves_the_table_alone(self) -> None:
        holder = pod("app-3g-v1-0", V100, {"nvidia.com/gpu": "1"})
        for flags in ("", "-d", V100, "-o wide", "-o json"):
            printed = inspect(flags, self.draining(), holder)
            message = (
                f"node {V100}: GPU 0 draining from exclusive use: held by default/app-3g-v1-0; "
                "shared once no such pod is left"
            )
            assert [line for line in printed.err.splitlines() if message in line], printed.err
            assert message not in printed.out

    def test_the_table_shows_what_the_card_will_share_as_document_001_prints_it(self) -> None:
        holder = pod("app-3g-v1-0", V100, {"nvidia.com/gpu": "1"})
        assert (
            inspect("", self.draining(), holder).out
            == inspect("", shared(V100, "192.168.2.167", 15)).out
        )
        assert inspect("-o wide", self.draining(), holder).out.splitlines()[1].split()[3:] == [
            "0/15",
            "unknown",
            "draining",
            "0",
        ]
        (printed,) = json.loads(inspect("-o json", self.draining(), holder).out)["nodes"]
        assert (printed["totalGPU"], printed["usedGPU"], printed["mode"]) == (15, 0, "draining")
        assert [(card["totalGPU"], card["health"], card["reason"]) for card in printed["devs"]] == [
            (15, "Healthy", "draining")
        ]

    def test_a_node_that_goes_back_to_whole_cards_and_has_no_sharer_is_not_shown(self) -> None:
        """The first card drains, but no pod in its inventory holds it; the node offers shared
        memory no longer.
        """
        left = {**self.draining(is_shared=False)}
        left["status"] = {
            **left["status"],
            "capacity": {"nvidia.com/gpu": "1"},
            "allocatable": {"nvidia.com/gpu": "1"},
        }
        assert inspect("", left).out == inspect("", node("other", "10.0.0.1", {})).out

    def test_it_names_the_holders_and_no_other(self) -> None:
        pods = [pod(f"p-{number}", V100, {"nvidia.com/gpu": "1"}) for number in range(7)]
        others = [pod("cpu", V100, {"cpu": "1"}), pod("elsewhere", T4, {"nvidia.com/gpu": "1"})]
        ended = pod("ended", V100, {"nvidia.com/gpu": "1"}, phase="Succeeded")
        printed = inspect("", self.draining(gpus=8), *pods, *others, ended).err
        names = ", ".join(f"default/p-{number}" for number in range(5))
        assert (
            f"GPU 0,1,2,3,4,5,6,7 draining from exclusive use: held by {names} and 2 more; shared"
        ) in printed

    def test_it_shows_cards_that_go_back_to_whole(self) -> None:
        printed = inspect(
            "",
            self.draining(is_shared=False),
            tenant("nb", V100, 4),
            pod("whole", T4, {"nvidia.com/gpu": "1"}),
        ).err
        assert (
            "GPU 0 draining from shared use: held by default/nb; exclusive once no such pod is left"
        ) in printed

    def test_it_prints_nothing_where_nothing_drains_or_of_nodes_that_were_not_requested(
        self,
    ) -> None:
        assert inspect("", reported(T4, "192.168.3.184", [14])).err == ""
        assert (
            "draining" not in inspect(T4, self.draining(), reported(T4, "192.168.3.184", [14])).err
        )
