"""`arena top node --legacy`, `-s`, `-s -d`: the output of arena 0.4
(docs/spec/arena-cli-samples.md#legacy-layout-of-nodes, docs/spec/arena-cli.md#legacy-layout, and
document 003).
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.cli.api_objects import Object, node, pod, snapshot_of
from tests.cli.command import run_command
from tests.cli.jobs.company import company

from fairlead.cli.frame.arena_config import is_legacy_layout
from fairlead.cli.frame.messages import Messages
from fairlead.cli.nodes.inspect_tables import trimmed
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.run.machine import OwnMachine

SAMPLES = Path(__file__).parents[2] / "golden" / "top_node"
T4 = "cn-zhangjiakou.192.168.3.184"
MASTERS = ("192.168.0.138", "192.168.1.112", "192.168.3.115")


def plain(ip: str) -> Object:
    labels = {"node-role.kubernetes.io/master": ""} if ip in MASTERS else {}
    return node(f"cn-zhangjiakou.{ip}", ip, labels=labels)


def shared(
    name: str = T4,
    ip: str = "192.168.3.184",
    units: int = 14,
    gpus: int = 1,
    **more: dict[str, str],
) -> Object:
    return node(
        name, ip, {"aliyun.com/gpu-mem": str(units), "aliyun.com/gpu-count": str(gpus)}, **more
    )


def sharer(name: str, units: int = 4, gpu: int | None = 0, on: str = T4) -> Object:
    notes = (
        {}
        if gpu is None
        else {"scheduler.framework.gpushare.allocation": json.dumps({"0": {str(gpu): units}})}
    )
    return pod(name, on, {"aliyun.com/gpu-mem": str(units)}, annotations=notes)


def document_003(*pods: Object) -> ClusterSnapshot:
    return snapshot_of([shared(), *(plain(ip) for ip in (*MASTERS, "192.168.1.113"))], pods)


NOTEBOOKS = [
    sharer(name)
    for name in (
        "tf-notebook-7cf4575d78-9gxzd",
        "tf-notebook-3-86c48d4c7d-lk9h8",
        "tf-notebook-2-7b4d68d8f7-wxlff",
    )
]


def printed(line: str, snapshot: ClusterSnapshot) -> str:
    return trimmed(run_command(f"top node {line}", snapshot).out)


@pytest.mark.parametrize(
    ("name", "flags", "snapshot"),
    [
        ("S15", "--legacy", document_003()),
        ("S16-before", "-s", document_003()),
        ("S16-after", "-s", document_003(*NOTEBOOKS)),
        ("S17", "-s -d", document_003(*NOTEBOOKS)),
    ],
)
def test_the_samples_but_for_blanks_at_the_ends(
    name: str, flags: str, snapshot: ClusterSnapshot
) -> None:
    assert printed(flags, snapshot) == (SAMPLES / f"{name}.txt").read_text()


class TestTable:
    GPU = node("gpu", "10.0.0.1", {"nvidia.com/gpu": "4"})

    @pytest.mark.parametrize(
        ("nodes", "columns", "dashes"),
        [
            ([GPU], [], 89),
            ([GPU, shared()], ["GPU(Shareable)"], 96),
            (
                [
                    node(
                        "gpu",
                        "10.0.0.1",
                        {"nvidia.com/gpu": "4"},
                        allocatable={"nvidia.com/gpu": "3"},
                    )
                ],
                ["GPU(Unhealthy)"],
                99,
            ),
            (
                [
                    node(
                        "gpu",
                        "10.0.0.1",
                        {"nvidia.com/gpu": "4"},
                        allocatable={"nvidia.com/gpu": "3"},
                    ),
                    shared(),
                ],
                ["GPU(Unhealthy)", "GPU(Shareable)"],
                107,
            ),
        ],
    )
    def test_columns_decide_the_dashes(
        self, nodes: list[Object], columns: list[str], dashes: int
    ) -> None:
        lines = printed("--legacy", snapshot_of(nodes)).splitlines()
        assert lines[0].split()[6:] == columns
        assert "-" * dashes in lines

    def test_values_end_with_a_tab_and_are_padded(self) -> None:
        assert run_command("top node --legacy", snapshot_of([self.GPU])).out.endswith(
            "In Cluster:\n0/4 (0%)  \n"
        )

    def test_a_shared_gpu_with_any_memory_in_use_is_allocated_and_percent_is_cut(self) -> None:
        lines = printed(
            "--legacy",
            snapshot_of([shared(units=30, gpus=3)], [sharer("a", 1, 0), sharer("b", 1, 1)]),
        ).splitlines()
        assert lines[1].split()[4:] == ["3", "2", "Yes"]
        assert lines[-1] == "2/3 (66%)"

    def test_gpus_of_a_node_that_is_not_ready_are_not_active(self) -> None:
        dead = node("dead", "10.0.0.2", {"nvidia.com/gpu": "2"}, ready="Unknown")
        lines = printed(
            "--legacy", snapshot_of([self.GPU, dead], [pod("p", "gpu", {"nvidia.com/gpu": "1"})])
        ).splitlines()
        assert lines[1].split()[3] == "notReady"
        assert lines[-4:] == [
            "Allocated/Total GPUs In Cluster:",
            "1/6 (16%)",
            "Allocated/Total GPUs(Active) In Cluster:",
            "1/4 (25%)",
        ]


def test_blocks_of_all_nodes() -> None:
    sick = node("gpu-1", "10.0.0.1", {"nvidia.com/gpu": "4"}, allocatable={"nvidia.com/gpu": "3"})
    pods = [pod("worker", "gpu-1", {"nvidia.com/gpu": "1"}), sharer("nb", 7, 0, "gpu-2")]
    assert (
        printed(
            "--legacy -d",
            snapshot_of([sick, shared("gpu-2", "10.0.0.2"), node("plain", "10.0.0.3")], pods),
        )
        == f"""\


NAME:       gpu-1
IPADDRESS:  10.0.0.1
ROLE:       <none>

NAMESPACE  NAME    GPU REQUESTS
default    worker  1

Total GPUs In Node gpu-1:      4
Allocated GPUs In Node gpu-1:  1 (25%)
Unhealthy GPUs In Node gpu-1:  1 (25%)
{"-" * 89}

NAME:       gpu-2
IPADDRESS:  10.0.0.2
ROLE:       <none>

NAMESPACE  NAME  GPU REQUESTS
default    nb    0.50

Total GPUs In Node gpu-2:      1
Allocated GPUs In Node gpu-2:  1 (100%)
If Node is Shareable :         Yes
Unhealthy GPUs In Node gpu-2:  0 (0%)
{"-" * 89}

NAME:       plain
IPADDRESS:  10.0.0.3
ROLE:       <none>

Total GPUs In Node plain:      0
Allocated GPUs In Node plain:  0 (0%)
Unhealthy GPUs In Node plain:  0 (0%)
{"-" * 89}


Allocated/Total GPUs In Cluster:  2/5 (40%)
Unhealthy/Total GPUs In Cluster:  1/5 (20%)
"""
    )


class TestShares:
    def test_totals_are_allocatable_and_a_missing_gpu_is_0_of_0(self) -> None:
        two = shared("a", "10.0.0.1", 30, 2, allocatable={"aliyun.com/gpu-mem": "28"})
        off = shared("off", "10.0.0.3", 14, 1, allocatable={"aliyun.com/gpu-mem": "0"})
        assert [
            line.split()
            for line in printed(
                "-s", snapshot_of([two, shared("b", "10.0.0.2"), off])
            ).splitlines()[1:3]
        ] == [
            ["a", "10.0.0.1", "0/14", "0/14"],
            ["b", "10.0.0.2", "0/14", "0/0"],
        ]

    def test_a_pod_on_no_known_card_counts_in_the_blocks_only(self) -> None:
        snapshot = snapshot_of([shared()], [sharer("known", 4), sharer("lost", 2, None)])
        assert printed("-s", snapshot).splitlines()[-1] == "4/14 (GiB) (28%)"
        lines = printed("-s -d", snapshot).splitlines()
        assert [
            line.split() for line in lines if line.startswith(("known", "lost", "Allocated :"))
        ] == [
            ["known", "default", "4"],
            ["lost", "default", "0"],
            ["Allocated", ":", "6", "(42%)"],
        ]
        assert lines[-1] == "6/14 (GiB) (42%)"

    def test_cards_of_an_inventory_have_their_own_sizes(self) -> None:
        slots = json.dumps(
            [
                {"index": 0, "units": 15, "mode": "shared"},
                {"index": 1, "units": 39, "mode": "shared"},
            ]
        )
        mixed = shared("a", "10.0.0.1", 54, 2, annotations={"fairlead.io/gpus": slots})
        assert printed("-s", snapshot_of([mixed], [sharer("p", 4, 1, "a")])).splitlines()[
            1
        ].split()[2:] == ["0/15", "4/39"]

    def test_a_node_in_mib_is_in_mib(self) -> None:
        notes = {"fairlead.io/gpu-mem-unit": "MiB"}
        assert (
            printed("-s", snapshot_of([shared(units=15079, annotations=notes)])).splitlines()[-1]
            == "0/15079 (MiB) (0%)"
        )
        mixed = snapshot_of([shared(units=15079, annotations=notes), shared("b", "10.0.0.2")])
        assert printed("-s", mixed).splitlines()[-1] == "0/28 (GiB) (0%)"

    def test_no_node_shares_anything(self) -> None:
        assert printed("-s", snapshot_of([plain("192.168.1.113")])).splitlines()[-2:] == [
            "Allocated/Total GPU Memory In GPUShare Node:",
            "0/0 (GiB) (0%)",
        ]

    def test_a_node_with_both_resources_is_reported(self) -> None:
        both = node(
            "n",
            "10.0.0.1",
            {"aliyun.com/gpu-mem": "14", "aliyun.com/gpu-count": "1", "nvidia.com/gpu": "1"},
        )
        assert (
            "has both nvidia.com/gpu and aliyun.com/gpu-mem"
            in run_command("top node -s", snapshot_of([both])).err
        )


def test_json_has_no_legacy_layout() -> None:
    snapshot = document_003(*NOTEBOOKS)
    assert (
        run_command("top node -s -o json", snapshot).out
        == run_command("top node -o json", snapshot).out
    )


def test_the_layout_of_a_site(tmp_path: Path) -> None:
    reported = io.StringIO()
    messages = Messages("fairlead", reported)
    home = {"HOME": str(tmp_path)}
    assert not is_legacy_layout(home, OwnMachine(home), messages)
    assert is_legacy_layout({**home, "ARENA_OUTPUT": "legacy"}, OwnMachine(home), messages)
    config = tmp_path / ".arena" / "config"
    config.parent.mkdir()
    config.write_text("output=legacy\n")
    assert is_legacy_layout(home, OwnMachine(home), messages)
    assert not is_legacy_layout({**home, "ARENA_OUTPUT": "current"}, OwnMachine(home), messages)
    assert reported.getvalue() == ""
    config.write_text("output=wrong\n")
    assert not is_legacy_layout(home, OwnMachine(home), messages) and not is_legacy_layout(
        home, OwnMachine(home), messages
    )
    is_wrong = (
        f"warning: `output=wrong` in `{config}` is not a layout of tables and is ignored: use "
        "`legacy` or `current`\n"
    )
    assert reported.getvalue() == is_wrong
    assert not is_legacy_layout({**home, "ARENA_OUTPUT": "Legacy"}, OwnMachine(home), messages)
    assert (
        reported.getvalue()
        .removeprefix(is_wrong)
        .startswith("warning: `ARENA_OUTPUT=Legacy` is not a layout")
    )


@pytest.mark.parametrize("line", ["top node", "list", "get bert", "top job"])
def test_a_layout_that_does_not_exist_is_reported_once(line: str) -> None:
    snapshot = document_003(*NOTEBOOKS) if line == "top node" else company()
    printed = run_command(line, snapshot, env={"ARENA_OUTPUT": "0.4"})
    assert printed.out == run_command(line, snapshot).out
    assert printed.err.count("`ARENA_OUTPUT=0.4` is not a layout") == 1
