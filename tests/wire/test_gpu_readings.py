"""Readings from exporter pages in three formats: a card is one reading, and values that are not on
the page are unknown.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.wire.metrics.gpu_readings import parse_readings, with_idle_since
from fairlead.wire.metrics.prom_text import parse_page

PAGES = Path(__file__).parent / "pages"
NATIVE = (PAGES / "native.prom").read_text()
CONTAINERS = (PAGES / "containers.prom").read_text()
DCGM = (PAGES / "dcgm.prom").read_text()
LEGACY = (PAGES / "legacy.prom").read_text()


def readings(text: str, node: str = "") -> tuple[GpuReading, ...]:
    return parse_readings(parse_page(text).samples, 100.0, node)


def test_our_own_page() -> None:
    lost, busy = readings(NATIVE + CONTAINERS)
    assert lost == GpuReading(
        "n1", 0, "GPU-a", "T4", healthy=False, last_xid=79, last_xid_at=50, read_at=100.0
    )
    assert busy == GpuReading(
        "n1",
        1,
        "GPU-b",
        "T4",
        memory_total_mib=15360,
        memory_used_mib=1,
        utilization_ratio=0.25,
        temperature_celsius=61,
        healthy=True,
        driver_version="570.1",
        read_at=100.0,
        holders=(GpuHolder("ns", "p", "c", "share", 1, 2, None),),
    )


def test_dcgm_exporters_page() -> None:
    (found,) = readings(DCGM)
    assert (found.node, found.index, found.model, found.driver_version) == ("n1", 0, "T4", "550.1")
    assert (found.utilization_ratio, found.memory_used_mib, found.memory_total_mib) == (
        0.8,
        100,
        15360,
    )
    assert (found.last_xid, found.last_xid_at, found.healthy) == (31, None, None)
    assert found.holders == (GpuHolder("ns", "p", "c", "exclusive"),)


def test_dcgm_behind_a_prometheus_that_renamed_pod_labels() -> None:
    text = DCGM.replace(",container=", ",exported_container=").replace(
        ",namespace=", ',namespace="monitoring",exported_namespace='
    )
    (found,) = readings(text.replace(",pod=", ',pod="exporter-x",exported_pod='))
    assert found.holders == (GpuHolder("ns", "p", "c", "exclusive"),)


def test_the_exporter_has_no_card_that_prometheus_puts_its_name_on() -> None:
    """Where no pod has the card alone, the target's labels stand in the pod's place."""
    of_target = ',pod="exporter-x",namespace="monitoring",container="nvidia-dcgm-exporter"'
    text = re.sub(r',(container|namespace|pod)="[^"]*"', "", DCGM).replace("}", of_target + "}")
    (found,) = readings(text)
    assert (found.memory_used_mib, found.holders) == (100, ())


def test_a_page_of_dcgm_since_4_6_is_read_as_one_of_before() -> None:
    renamed = {
        "DCGM_FI_DEV_GPU_UTIL{": "DCGM_FI_DEV_GPU_UTIL_RATIO{",
        "DCGM_FI_DEV_GPU_TEMP{": "DCGM_FI_DEV_GPU_TEMP_CELSIUS{",
        "DCGM_FI_DEV_POWER_USAGE{": "DCGM_FI_DEV_BOARD_POWER_WATTS{",
        "DCGM_FI_DEV_XID_ERRORS{": "DCGM_FI_DEV_XID_ERROR{",
        "DCGM_FI_DRIVER_VERSION=": "DCGM_FI_SYSTEM_DRIVER_VERSION=",
    }
    text = DCGM
    for old, new in renamed.items():
        text = text.replace(old, new)
    assert text != DCGM and readings(text) == readings(DCGM)


def test_a_total_is_not_guessed_from_two_of_its_three_parts() -> None:
    (found,) = readings("\n".join(line for line in DCGM.splitlines() if "FB_RESERVED" not in line))
    assert found.memory_total_mib is None


def test_the_legacy_page_has_devices_and_their_sharers() -> None:
    (found,) = readings(LEGACY)
    assert (found.node, found.index, found.model, found.power_watts) == ("n2", 1, "V100", 250.5)
    assert (found.utilization_ratio, found.memory_used_mib) == (0.4, 2)
    assert found.holders == (GpuHolder("ns", "p", "c", "share", 1, None, 0.15),)


def test_our_own_families_win_where_a_card_has_both() -> None:
    both = {each.uuid: each for each in readings(NATIVE + DCGM + LEGACY)}
    assert sorted(both) == ["GPU-a", "GPU-b", "GPU-v"]
    assert both["GPU-a"].utilization_ratio is None, (
        "a lost card of Fairlead has no value, whatever stands beside it"
    )


def test_a_page_without_host_names_takes_its_nodes() -> None:
    assert (
        readings(DCGM.replace('Hostname="n1",', "").replace(',Hostname="n1"', ""), "n9")[0].node
        == "n9"
    )


def test_mig_instances_are_not_taken_for_their_card() -> None:
    mig = (
        'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",GPU_I_PROFILE="1g.18gb",GPU_I_ID="3",'
        'Hostname="n1"} 7\n'
    )
    assert readings(DCGM + mig)[0].memory_used_mib == 100


def test_idle_since_starts_with_the_first_idle_look_and_ends_with_work() -> None:
    def at(ratio: float | None, read_at: float) -> GpuReading:
        return GpuReading("n", 0, "u", utilization_ratio=ratio, read_at=read_at)

    (first,) = with_idle_since([at(0.0, 10)], {})
    (second,) = with_idle_since([at(0.005, 20)], {"u": first})
    (busy,) = with_idle_since([at(0.5, 30)], {"u": second})
    (again,) = with_idle_since([at(0.0, 40)], {"u": busy})
    (unknown,) = with_idle_since([at(None, 50)], {"u": again})
    assert [each.idle_since for each in (first, second, busy, again, unknown)] == [
        10,
        10,
        None,
        40,
        None,
    ]


def test_a_divided_card_has_the_memory_of_its_instances_and_all_their_holders() -> None:
    card = 'node_name="n1",gpu="1",uuid="GPU-b",model="H200"'
    rows = [f"fairlead_gpu_power_watts{{{card}}} 300", f"fairlead_gpu_up{{{card}}} 1"]
    for instance, used, total in ((1, 10, 100), (2, 20, 200)):
        mig = f'{card},mig_gi_id="{instance}",mig_profile="1g.18gb"'
        rows += [
            f"fairlead_gpu_memory_used_bytes{{{mig}}} {used << 20}",
            f"fairlead_gpu_memory_total_bytes{{{mig}}} {total << 20}",
        ]
        rows += [f"fairlead_gpu_utilization_ratio{{{mig}}} 0.5"]
        who = (
            f'{mig},namespace_name="ns",pod_name="p",container_name="c",pod_uid="u",'
            'allocate_mode="mig"'
        )
        rows += [f"fairlead_container_gpu_memory_used_bytes{{{who}}} {used << 20}"]
    (found,) = readings("\n".join(rows) + "\n")
    assert (found.memory_used_mib, found.memory_total_mib, found.power_watts) == (30, 300, 300)
    assert found.utilization_ratio == 0.5, "its instances, by their slices of compute"
    assert [
        (each.id, each.profile, each.memory_used_mib, each.utilization_ratio)
        for each in found.instances
    ] == [
        (1, "1g.18gb", 10, 0.5),
        (2, "1g.18gb", 20, 0.5),
    ]
    assert [(holder.pod, holder.mode, holder.memory_used_mib) for holder in found.holders] == [
        ("p", "mig", 30)
    ]
    assert [holder.utilization_ratio for each in found.instances for holder in each.holders] == [
        0.5,
        0.5,
    ]


def test_a_holder_of_instances_that_is_reported_twice_has_its_memory_once() -> None:
    labels = (
        'node_name="n1",gpu="0",uuid="GPU-a",namespace_name="ns",pod_name="p",container_name="c",'
        'allocate_mode="exclusive"'
    )
    lines = [
        f'fairlead_container_gpu_memory_used_bytes{{{labels},mig_gi_id="{instance}"}} 1048576'
        for instance in (1, 2)
    ]
    (found,) = readings("\n".join([*lines, *lines]))
    assert [each.memory_used_mib for each in found.holders] == [2]


def test_instances_of_dcgm_exporter_are_read_and_repeated_values_of_the_board_count_once() -> None:
    lines = []
    for instance, profile, used, busy in ((1, "3g.71gb", 30, 0.5), (9, "1g.18gb", 7, 0.1)):
        labels = (
            f'gpu="0",UUID="GPU-a",GPU_I_PROFILE="{profile}",GPU_I_ID="{instance}",Hostname="n1",'
            f'namespace="ns",pod="p{instance}"'
        )
        lines += [
            f"DCGM_FI_DEV_FB_USED{{{labels}}} {used}",
            f"DCGM_FI_DEV_FB_FREE{{{labels}}} 1",
            f"DCGM_FI_DEV_FB_RESERVED{{{labels}}} 0",
        ]
        lines += [
            f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} {busy}",
            f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 300",
        ]
    (found,) = readings("\n".join(lines) + "\n")
    assert (found.memory_used_mib, found.memory_total_mib, found.power_watts) == (37, 39, 300)
    assert found.utilization_ratio == pytest.approx((3 * 0.5 + 0.1) / 4)
    assert [
        (each.id, each.profile, [holder.pod for holder in each.holders]) for each in found.instances
    ] == [
        (1, "3g.71gb", ["p1"]),
        (9, "1g.18gb", ["p9"]),
    ]


def test_a_card_that_does_not_report_one_instance_s_work_does_not_report_its_own() -> None:
    labels = 'node_name="n1",gpu="0",uuid="GPU-a",mig_profile="1g.18gb"'
    lines = [
        f'fairlead_gpu_utilization_ratio{{{labels},mig_gi_id="7"}} 0.5',
        f'fairlead_gpu_memory_used_bytes{{{labels},mig_gi_id="8"}} 0',
    ]
    (found,) = readings("\n".join(lines) + "\n")
    assert found.utilization_ratio is None
