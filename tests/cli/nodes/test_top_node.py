"""Rules of `arena top node` beyond the samples.

See docs/spec/arena-cli.md#top-node, docs/spec/arena-cli.md#documents, docs/spec/arena-cli.md#nodes,
docs/spec/arena-cli.md#comparison-with-arena.
"""

from __future__ import annotations

import json

import pytest
import yaml
from tests.cli.api_objects import Object, node, pod, reading, snapshot_of, topology_map
from tests.cli.command import run_command

from fairlead.errors import UserError
from fairlead.model.source import Source
from fairlead.rules.reports.node import report_nodes

EXCLUSIVE = node("gpu-1", "10.0.0.1", {"nvidia.com/gpu": "4"})
NORMAL = node("cpu-1", "10.0.0.9")
TOPOLOGY = node(
    "gpu-3", "10.0.0.3", {"aliyun.com/gpu": "2"}, labels={"ack.node.gpu.schedule": "topology"}
)
MATRICES = topology_map(
    {"0": "Healthy", "1": "Unhealthy"}, [["N-A", "NV2"], ["NV2", "N-A"]], [[1.0, 2.0], [3.0, 4.0]]
)


def share(name: str = "gpu-2", units: int = 30, gpus: int = 2, **more: dict[str, str]) -> Object:
    return node(
        name,
        "10.0.0.2",
        {"aliyun.com/gpu-mem": str(units), "aliyun.com/gpu-count": str(gpus)},
        **more,
    )


def sharer(name: str, units: int, gpu: int, on: str = "gpu-2") -> Object:
    text = json.dumps({"0": {str(gpu): units}})
    return pod(
        name,
        on,
        {"aliyun.com/gpu-mem": str(units)},
        annotations={"scheduler.framework.gpushare.allocation": text},
    )


def lines(line: str, *nodes: Object, pods: list[Object] | None = None) -> list[str]:
    return run_command(line, snapshot_of(nodes, pods or [])).out.splitlines()


def cell(line: str, row: int, column: int, *nodes: Object, pods: list[Object] | None = None) -> str:
    return lines(line, *nodes, pods=pods)[row].split()[column]


class TestTables:
    def test_normal_nodes_alone_have_header_and_rows_and_no_footer(self) -> None:
        assert lines("top node", NORMAL) == [
            "NAME   IPADDRESS  ROLE    STATUS  GPU(Total)  GPU(Allocated)",
            "cpu-1  10.0.0.9   <none>  Ready   0           0",
        ]

    def test_the_mixed_footer_is_left_out_when_names_were_given_and_an_own_footer_stays(
        self,
    ) -> None:
        assert len(lines("top node cpu-1 gpu-1", NORMAL, EXCLUSIVE)) == 3
        assert lines("top node gpu-1", NORMAL, EXCLUSIVE)[-1] == "0/4 (0.0%)"

    def test_names_are_in_natural_order(self) -> None:
        nodes = [
            node(name, "10.0.0.1", {"nvidia.com/gpu": "1"}) for name in ("gpu-10", "gpu-9", "gpu-2")
        ]
        assert [line.split()[0] for line in lines("top node", *nodes)[1:4]] == [
            "gpu-2",
            "gpu-9",
            "gpu-10",
        ]

    def test_a_longer_name_moves_the_columns_and_nothing_else(self) -> None:
        longer = node("a-much-longer-name", "10.0.0.1", {"nvidia.com/gpu": "4"})
        short, long = lines("top node", EXCLUSIVE), lines("top node", longer)
        assert [line.replace("a-much-longer-name", "gpu-1").split() for line in long] == [
            line.split() for line in short
        ]
        assert long[0].index("IPADDRESS") == len("a-much-longer-name") + 2

    def test_unhealthy_shares_are_counted_in_whole_gpus(self) -> None:
        sick = share(units=30, gpus=2, allocatable={"aliyun.com/gpu-mem": "15"})
        assert lines("top node", sick)[1].split()[-1] == "1"
        assert lines("top node", sick)[-2:] == [
            "Unhealthy/Total GPUs of nodes which own resource aliyun.com/gpu-mem In Cluster:",
            "1/2 (50.0%)",
        ]

    def test_a_node_whose_gpus_all_failed_is_still_a_gpu_node(self) -> None:
        dead = node(
            "gpu-1", "10.0.0.1", {"nvidia.com/gpu": "4"}, allocatable={"nvidia.com/gpu": "0"}
        )
        assert lines("top node", dead)[1].split()[4:] == ["4", "0", "4"]

    def test_a_gpu_that_drains_into_the_other_mode_is_not_unhealthy(self) -> None:
        inventory = json.dumps([{"index": 0, "mode": "draining"}, {"index": 1, "mode": "shared"}])
        draining = share(
            allocatable={"aliyun.com/gpu-mem": "15"}, annotations={"fairlead.io/gpus": inventory}
        )
        assert "UNHEALTHY" not in lines("top node", draining)[0]

    def test_an_unhealthy_gpu_is_unhealthy_while_others_drain_from_exclusive_use(self) -> None:
        slots = [
            {"index": index, "units": 15, "mode": mode}
            for index, mode in enumerate(("draining", "draining", "shared", "shared"))
        ]
        reported = {
            "labels": {"cgpu": "true"},
            "annotations": {"fairlead.io/gpus": json.dumps(slots)},
        }
        joining = share(units=30, gpus=2, allocatable={"aliyun.com/gpu-mem": "15"}, **reported)
        assert lines("top node", joining)[1].split()[-1] == "1"
        waiting = node(
            "gpu-1",
            "10.0.0.1",
            {"nvidia.com/gpu": "4"},
            allocatable={"nvidia.com/gpu": "2"},
            **reported,
        )
        assert "UNHEALTHY" not in lines("top node", waiting)[0]

    def test_a_gpu_that_is_still_held_whole_is_none_of_the_shared_ones(self) -> None:
        slots = [
            {"index": 0, "units": 15, "mode": "draining"},
            {"index": 1, "units": 15, "mode": "shared"},
        ]
        joining = share(units=15, gpus=1, annotations={"fairlead.io/gpus": json.dumps(slots)})
        assert [device.index for device in report_nodes(snapshot_of([joining]))[0].devices] == [1]
        leaving = sharer("last", 4, 0)
        assert [
            device.index for device in report_nodes(snapshot_of([joining], [leaving]))[0].devices
        ] == [0, 1]
        assert lines("top node -s", joining)[1].split()[2:] == ["0/0", "0/15"]

    def test_gpu_core_has_its_own_footer(self) -> None:
        cores = node(
            "gpu-2",
            "10.0.0.2",
            {
                "aliyun.com/gpu-mem": "30",
                "aliyun.com/gpu-count": "2",
                "aliyun.com/gpu-core.percentage": "200",
            },
        )
        assert lines("top node", cores)[1].split()[-1] == "0/200"
        assert lines("top node", cores)[-2:] == [
            (
                "Allocated/Total GPU Core of nodes which own resource "
                "aliyun.com/gpu-core.percentage In Cluster:"
            ),
            "0/200 (0.0%)",
        ]


class TestNodes:
    @pytest.mark.parametrize(
        ("described", "status"),
        [
            (node("n", "10.0.0.1"), "Ready"),
            (node("n", "10.0.0.1", ready="False"), "NotReady"),
            (node("n", "10.0.0.1", ready="Unknown"), "NotReady"),
            (node("n", "10.0.0.1", ready=None), "Unknown"),
            (node("n", "10.0.0.1", unschedulable=True), "Ready,SchedulingDisabled"),
        ],
    )
    def test_status(self, described: Object, status: str) -> None:
        assert cell("top node", 1, 3, described) == status

    def test_roles_of_both_labels_are_sorted(self) -> None:
        labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}
        assert cell("top node", 1, 2, node("n", "10.0.0.1", labels=labels)) == "gpu,worker"

    def test_without_an_address_there_is_a_word(self) -> None:
        bare = node("n", "10.0.0.1")
        bare["status"]["addresses"] = None
        assert cell("top node", 1, 1, bare) == "N/A"

    def test_shared_comes_before_exclusive_and_zero_is_absent(self) -> None:
        both = node(
            "n",
            "10.0.0.1",
            {"nvidia.com/gpu": "2", "aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"},
        )
        switched = node("n", "10.0.0.1", {"nvidia.com/gpu": "2", "aliyun.com/gpu-mem": "0"})
        assert [report_nodes(snapshot_of([each]))[0].mode for each in (both, switched)] == [
            "share",
            "exclusive",
        ]

    def test_the_label_alone_makes_no_topology_node(self) -> None:
        assert report_nodes(snapshot_of([TOPOLOGY]))[0].mode == "none"
        assert (
            report_nodes(snapshot_of([TOPOLOGY], topologies={"gpu-3": MATRICES}))[0].mode
            == "topology"
        )


class TestHolders:
    def test_finished_pods_do_not_count_and_terminating_ones_do(self) -> None:
        pods = [
            pod("done", "gpu-1", {"nvidia.com/gpu": "1"}, phase="Succeeded"),
            pod("dead", "gpu-1", {"nvidia.com/gpu": "1"}, phase="Failed"),
            pod("going", "gpu-1", {"nvidia.com/gpu": "1"}, deleted=True),
            pod("here", "gpu-1", {"nvidia.com/gpu": "1"}),
        ]
        assert cell("top node", 1, 5, EXCLUSIVE, pods=pods) == "2"
        details = "\n".join(lines("top node -d", EXCLUSIVE, pods=pods))
        assert "going  Terminating  1" in details and "done" not in details

    def test_an_init_container_that_asks_for_more_decides(self) -> None:
        asking = pod("p", "gpu-1", {"nvidia.com/gpu": "1"})
        asking["spec"]["initContainers"] = [
            {"name": "first", "resources": {"limits": {"nvidia.com/gpu": "3"}}}
        ]
        assert cell("top node", 1, 5, EXCLUSIVE, pods=[asking]) == "3"

    def test_a_share_pod_without_a_usable_annotation_is_listed_and_allocated_nowhere(self) -> None:
        lost = pod(
            "lost",
            "gpu-2",
            {"aliyun.com/gpu-mem": "6"},
            annotations={"scheduler.framework.gpushare.allocation": "{"},
        )
        out = lines("top node -d", share(), pods=[lost])
        assert "  default    lost  6.0 GiB             N/A" in out
        assert "  Allocated GPUs: 0" in out

    def test_our_annotation_comes_before_the_references(self) -> None:
        notes = {
            "fairlead.io/gpu-allocation": (
                '{"main":[{"uuid":"GPU-1","index":1,"units":4,"mib":4301}]}'
            ),
            "scheduler.framework.gpushare.allocation": '{"0":{"0":9}}',
        }
        holder = pod("p", "gpu-2", {"aliyun.com/gpu-mem": "4"}, annotations=notes)
        assert "  default    p     4.0 GiB             gpu1(4.0GiB)" in lines(
            "top node -d", share(), pods=[holder]
        )

    def test_the_oldest_annotation_names_one_gpu_for_all(self) -> None:
        holder = pod(
            "p", "gpu-2", {"aliyun.com/gpu-mem": "4"}, annotations={"ALIYUN_COM_GPU_MEM_IDX": "1"}
        )
        assert "  default    p     4.0 GiB             gpu1(4.0GiB)" in lines(
            "top node -d", share(), pods=[holder]
        )


class TestResources:
    NODES = (
        node(
            "a",
            "10.0.0.1",
            {"nvidia.com/gpu": "4", "cpu": "16", "memory": "64Gi"},
            allocatable={"cpu": "15500m"},
        ),
        node("b", "10.0.0.2", {"nvidia.com/gpu": "8", "cpu": "32", "memory": "128Gi"}),
        node("c", "10.0.0.3", {"cpu": "8", "memory": "16Gi"}),
    )

    @staticmethod
    def asking(name: str, on: str, cpu: str, gpus: int = 0, phase: str = "Running") -> Object:
        made = pod(name, on, {"nvidia.com/gpu": str(gpus)} if gpus else {}, phase=phase)
        made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu, "memory": "6Gi"}
        return made

    def table(self, flags: str) -> list[list[str]]:
        pods = [
            self.asking("p", "a", "2500m", 3),
            self.asking("q", "a", "1", phase="Failed"),
            self.asking("r", "c", "7"),
            self.asking("s", "b", "1", 2),
        ]
        return [line.split() for line in lines(f"top node {flags}", *self.NODES, pods=pods)]

    def test_what_pods_ask_for_of_what_the_node_gives_stands_at_the_end(self) -> None:
        head, *rows = self.table("--resources")
        assert head[-2:] == ["CPU(Requested/Total)", "MEMORY(Requested/Total)"]
        assert [(row[0], *row[-3:]) for row in rows[:3]] == [
            ("c", "7/8", "6.0/16.0", "GiB"),
            ("a", "2.5/15.5", "6.0/64.0", "GiB"),
            ("b", "1/32", "6.0/128.0", "GiB"),
        ]
        assert [row[:-3] for row in rows[:3]] == self.table("")[1:4]

    def test_init_containers_count_by_the_larger_of(self) -> None:
        asking = self.asking("p", "a", "2")
        asking["spec"]["initContainers"] = [
            {"name": "first", "resources": {"requests": {"cpu": "5"}}}
        ]
        assert (
            lines("top node --resources", self.NODES[0], pods=[asking])[1].split()[-3] == "5/15.5"
        )

    @pytest.mark.parametrize("flags", ["-m e", "--legacy"])
    def test_other_tables_have_them_too(self, flags: str) -> None:
        assert ["a", "2.5/15.5"] in [
            [row[0], row[-3]] for row in self.table(f"{flags} --resources") if len(row) > 3
        ]

    @pytest.mark.parametrize(
        ("field", "order"),
        [
            ("name", "abc"),
            ("gpus", "bac"),
            ("allocated", "abc"),
            ("free", "bac"),
            ("cpu", "cab"),
            ("memory", "cab"),
            ("unhealthy", "cab"),
        ],
    )
    @pytest.mark.parametrize("layout", ["", "--legacy"])
    def test_sorted_by(self, layout: str, field: str, order: str) -> None:
        assert "".join(row[0] for row in self.table(f"{layout} --sort-by {field}")[1:4]) == order

    def test_fields_that_do_not_exist_and_flags_that_do_not_go_together(self) -> None:
        with pytest.raises(UserError, match="`age`"):
            self.table("--sort-by age")
        with pytest.raises(UserError, match="`--resources`"):
            self.table("--resources -s")


class TestUnits:
    def test_a_large_gpu_declared_in_gib_stays_gib(self) -> None:
        assert cell("top node", 1, 5, share(units=143, gpus=1)) == "0.0/143.0"

    def test_mib_without_an_annotation_are_recognised_by_their_number(self) -> None:
        assert cell("top node", 1, 5, share(units=15079, gpus=1)) == "0.0/14.7"

    def test_an_annotation_decides(self) -> None:
        reported = share(units=900, gpus=1, annotations={"fairlead.io/gpu-mem-unit": "MiB"})
        assert cell("top node", 1, 5, reported) == "0.0/0.9"

    def test_parts_of_a_gpu_are_rounded_once_per_node_half_up(self) -> None:
        pods = [sharer("a", 3, 0), sharer("b", 3, 1)]  # 3/15 + 3/15 = 0.4
        assert cell("top node", 1, 4, share(), pods=pods) == "0.4/2"
        # 0.35
        assert cell("top node", 1, 4, share(units=20, gpus=1), pods=[sharer("a", 7, 0)]) == "0.4/1"

    def test_the_sum_over_nodes_is_rounded_and_not_a_sum_of_rounded_ones(self) -> None:
        nodes = [share(f"gpu-{number}", units=15, gpus=1) for number in range(3)]
        pods = [sharer(f"p{number}", 1, 0, on=f"gpu-{number}") for number in range(3)]
        assert [line.split()[4] for line in lines("top node", *nodes, pods=pods)[1:4]] == [
            "0.1/1"
        ] * 3
        assert "0.2/3 (6.7%)" in lines("top node", *nodes, pods=pods)

    def test_the_inventory_gives_each_gpu_its_own_units(self) -> None:
        inventory = json.dumps([{"index": 0, "units": 15}, {"index": 1, "units": 79}])
        uneven = share(units=94, annotations={"fairlead.io/gpus": inventory})
        out = lines("top node -d", uneven, pods=[sharer("p", 79, 1)])
        assert "  1      79 GiB         79 GiB(100.0%)" in out
        assert "  Allocated GPUs: 1" in out

    @pytest.mark.parametrize("absurd", ["1e30", "-5", "0.0001n"])
    def test_absurd_capacities_do_not_stop_the_table(self, absurd: str) -> None:
        strange = node(
            "gpu-x",
            "10.0.0.7",
            {"aliyun.com/gpu-mem": absurd, "aliyun.com/gpu-count": absurd, "nvidia.com/gpu": "1"},
        )
        assert any(line.startswith("gpu-x") for line in lines("top node", strange, EXCLUSIVE))
        for flags in ("--legacy", "--legacy -d", "-s", "-s -d", "-d"):
            assert lines(f"top node {flags}", strange, EXCLUSIVE)
        assert run_command("inspect gpu -d", snapshot_of([strange, EXCLUSIVE]), "fairlead").out


class TestMetrics:
    def readings(self) -> list:  # type: ignore[type-arg]
        return [
            reading("gpu-1", 0, 15.0, 9.0, 71.0, [("default", "train-0")]),
            reading("gpu-1", 1, 15.0, 3.0, 9.0, [("monitoring", "gpu-exporter-x")]),
            reading("gpu-1", 2, 15.0, 1.0, 1.0, [("other", "train-0")]),
        ]

    def test_exclusive_pods_show_their_devices_and_namesakes_never_mix(self) -> None:
        snapshot = snapshot_of(
            [EXCLUSIVE],
            [pod("train-0", "gpu-1", {"nvidia.com/gpu": "1"})],
            readings=self.readings(),
        )
        out = run_command("top node -d --metric", snapshot).out.splitlines()
        assert "  default    train-0  Running  1               gpu0" in out
        assert "  0      15.0 GiB       15.0 GiB           9.0 GiB       71.0%" in out
        assert "  1      15.0 GiB       0.0 GiB            0.0 GiB       0.0%" in out
        assert "  2      15.0 GiB       0.0 GiB            0.0 GiB       0.0%" in out

    def test_without_data_the_layout_is_the_plain_one_and_one_line_gives_the_reason(self) -> None:
        off = {
            "gpu-telemetry": Source(
                "gpu-telemetry", "failing", "Prometheus `http://p` refused the connection"
            )
        }
        snapshot = snapshot_of(
            [EXCLUSIVE], [pod("train-0", "gpu-1", {"nvidia.com/gpu": "1"})], sources=off
        )
        printed = run_command("top node -d --metric", snapshot)
        assert printed.out == run_command("top node -d", snapshot).out
        assert printed.err.count("\n") == 1
        assert (
            'level=warning msg="GPU metrics unavailable: Prometheus `http://p` refused the '
            'connection"'
        ) in printed.err
        assert printed.status == 0

    def test_readings_are_not_asked_for_unless_wanted(self) -> None:
        snapshot = snapshot_of([EXCLUSIVE], readings=self.readings())
        assert (
            json.loads(run_command("top node -o json", snapshot).out)["gpuExclusiveNodes"][0][
                "gpuMetrics"
            ]
            == []
        )


class TestDocuments:
    def document(self, flags: str = "") -> dict:  # type: ignore[type-arg]
        pods = [pod("train-0", "gpu-1", {"nvidia.com/gpu": "2"}), sharer("nb", 6, 0)]
        group = {
            "topology.kubernetes.io/gpu-group": "0,1",
            "topology.kubernetes.io/gpu-visible": "1",
        }
        pods.append(pod("mpi", "gpu-3", {"aliyun.com/gpu": "2"}, annotations=group))
        snapshot = snapshot_of(
            [NORMAL, EXCLUSIVE, share(), TOPOLOGY],
            pods,
            {"gpu-3": MATRICES},
            [reading("gpu-1", 0, 15.0, 9.0, 71.0, [("default", "train-0")])],
        )
        out = run_command(f"top node -o json {flags}", snapshot).out
        assert not out.endswith("\n")
        assert out.startswith(
            '{\n    "gpuExclusiveNodes": [\n        {\n            "name": "gpu-1"'
        )
        loaded: dict = json.loads(out)  # type: ignore[type-arg]
        assert yaml.safe_load(run_command(f"top node -o yaml {flags}", snapshot).out) == loaded
        return loaded

    def test_there_are_four_arrays_and_every_node_has_its_common_keys(self) -> None:
        document = self.document()
        assert {name: [each["name"] for each in nodes] for name, nodes in document.items()} == {
            "gpuExclusiveNodes": ["gpu-1"],
            "gpuShareNodes": ["gpu-2"],
            "gpuTopologyNodes": ["gpu-3"],
            "normalNodes": ["cpu-1"],
        }
        assert document["normalNodes"][0] == {
            "name": "cpu-1",
            "description": "\n  This node has none gpu devices\n",
            "ip": "10.0.0.9",
            "status": "Ready",
            "role": "<none>",
            "type": "Normal",
        }

    def test_an_exclusive_node(self) -> None:
        found = self.document("--metric")["gpuExclusiveNodes"][0]
        assert (found["totalGPUs"], found["allocatedGPUs"], found["unhealthyGPUs"]) == (4, 2, 0)
        assert found["instances"] == [
            {"name": "train-0", "namespace": "default", "status": "Running", "requestGPUs": 2}
        ]
        assert found["gpuMetrics"] == [
            {
                "id": "0",
                "uuid": "GPU-gpu-1-0",
                "gpuDutyCycle": 71,
                "usedGPUMemory": 9 << 30,
                "totalGPUMemory": 15 << 30,
                "podNames": ["default/train-0"],
            }
        ]

    @pytest.mark.parametrize(
        "holders", [(), (("default", "train-0"),)], ids=["given to no pod", "given to a pod"]
    )
    def test_a_lost_gpu_is_unknown_and_not_idle_and_the_inventory_knows_its_size(
        self, holders: tuple[tuple[str, str], ...]
    ) -> None:
        lost = reading("gpu-1", 0, None, None, None, holders)
        inventory = {"fairlead.io/gpus": json.dumps([{"index": 0, "memoryMiB": 15360}])}
        pods = [pod("train-0", "gpu-1", {"nvidia.com/gpu": "1"})]
        for reported, known in (({}, {}), (inventory, {"totalGPUMemory": 15 << 30})):
            snapshot = snapshot_of(
                [node("gpu-1", "10.0.0.1", {"nvidia.com/gpu": "1"}, annotations=reported)],
                pods,
                readings=[lost],
            )
            found = json.loads(run_command("top node -o json --metric", snapshot).out)[
                "gpuExclusiveNodes"
            ][0]["gpuMetrics"]
            assert found == [
                {
                    "id": "0",
                    "uuid": "GPU-gpu-1-0",
                    **known,
                    "podNames": ["/".join(each) for each in holders],
                }
            ]
            shown = run_command("top node -d --metric", snapshot).out.splitlines()
            assert [line.split()[-2:] for line in shown if line.startswith("  0 ")] == [
                ["N/A", "N/A"]
            ]

    def test_a_share_node_is_in_bytes_and_its_pods_in_units(self) -> None:
        found = self.document()["gpuShareNodes"][0]
        assert (found["totalGPUMemory"], found["allocatedGPUMemory"], found["allocatedGPUs"]) == (
            30 << 30,
            6 << 30,
            0.4,
        )
        assert found["devices"][0] == {
            "id": "0",
            "totalGPUMemory": 15 << 30,
            "allocatedGPUMemory": 6 << 30,
            "totalGPUCore": 0,
            "allocatedGPUCore": 0,
        }
        assert found["instances"][0] == {
            "name": "nb",
            "namespace": "default",
            "status": "Running",
            "requestGPUMemory": 6,
            "requestGPUCore": 0,
            "gpuMemoryAllocation": {"0": 6},
            "gpuCoreAllocation": {},
        }

    def test_a_topology_node_has_matrices_and_devices(self) -> None:
        found = self.document()["gpuTopologyNodes"][0]
        assert found["gpuTopology"] == {
            "linkMatrix": [["N-A", "NV2"], ["NV2", "N-A"]],
            "bandwidthMatrix": [[1.0, 2.0], [3.0, 4.0]],
        }
        assert found["devices"] == [
            {"id": "0", "healthy": True, "status": "using"},
            {"id": "1", "healthy": False, "status": "using"},
        ]
        assert found["instances"][0]["allocation"] == ["0", "1"]
        assert found["instances"][0]["visibleGPUs"] == ["1"]

    def test_yaml_has_dashes_at_the_indent_of_their_key_and_ends_with_a_newline(self) -> None:
        out = run_command("top node -o yaml", snapshot_of([NORMAL])).out
        assert (
            out.startswith("gpuExclusiveNodes: []\n")
            and "\nnormalNodes:\n- name: cpu-1\n  description: " in out
        )
        assert out.endswith("\n")


class TestWarningsAndRefreshing:
    def test_absent_names_beside_existing_ones_get_a_warning_each(self) -> None:
        printed = run_command("top node gpu-1 gpu-7", snapshot_of([EXCLUSIVE]))
        assert printed.out.splitlines()[1].startswith("gpu-1")
        assert 'level=warning msg="node gpu-7 is not found"' in printed.err

    def test_forbidden_topologies_are_reported_and_the_node_stays_a_topology_node(self) -> None:
        sources = {
            "gpu-topologies": Source(
                "gpu-topologies", "forbidden", "forbidden: configmaps is forbidden"
            )
        }
        snapshot = snapshot_of([TOPOLOGY], topologies={"gpu-3": {}}, sources=sources)
        printed = run_command("top node -d", snapshot)
        assert "Type:    GPUTopology" in printed.out and "LinkTypeMatrix" not in printed.out
        assert 'msg="skipped configmaps: forbidden: configmaps is forbidden"' in printed.err

    def test_refreshing_repeats_every_two_seconds_with_a_separator(self) -> None:
        pauses: list[float] = []

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_command("top node -r", snapshot_of([EXCLUSIVE]), sleep=sleep)
        assert pauses == [2.0, 2.0]
