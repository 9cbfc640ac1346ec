"""Labels on DCGM's series beside the card's own: labels and UIDs of pods, HPC jobs, virtual GPUs.

See docs/spec/telemetry.md#flags-and-environment-variables,
docs/spec/telemetry.md#format-and-labels-of-dcgm-series, docs/spec/telemetry.md#attribution-rules.
"""

from __future__ import annotations

import re

import pytest
from msgspec import structs
from tests.apps.fakes import device, process

from fairlead.model.devices.counter import Counter
from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance, XidEvent
from fairlead.model.devices.series_names import PodIdentity, SeriesNames
from fairlead.rules.devices.pod_labels import printed_labels
from fairlead.rules.metrics.dcgm import DcgmLabels, dcgm_families
from fairlead.rules.metrics.dcgm_computed import (
    CLOCK_COUNT,
    HEALTH_STATUS,
    P2P_STATUS,
    XID_COUNT,
    ComputedMetrics,
)
from fairlead.wire.metrics.prom_text import parse_page, render_dcgm_number, render_page

UTIL, USED, TEMP, XID = (
    f"DCGM_FI_DEV_{name}" for name in ("GPU_UTIL", "FB_USED", "GPU_TEMP", "XID_ERRORS")
)
COUNTERS = [
    Counter(field, field, "gauge", "", is_double=False) for field in (UTIL, USED, TEMP, XID)
]
ALONE = (process("job-1", "exclusive", 400, 15360, 42),)
PODS = {
    ("research", "job-1"): PodIdentity("uid-of-the-api", {"app": "train", "team": "vision"}),
    ("research", "b"): PodIdentity("uid-b", {}),
}


def lines(
    samples: list[DeviceSample],
    names: SeriesNames,
    labels: DcgmLabels | None = None,
    *more: Counter,
) -> list[str]:
    families = dcgm_families(samples, [*COUNTERS, *more], labels or DcgmLabels(), names=names)
    text = b"".join(render_page(families, render_dcgm_number)).decode()
    parse_page(text)
    return [line for line in text.splitlines() if not line.startswith("#")]


def card(*holders: DeviceProcess, index: int = 0) -> DeviceSample:
    return device(index, processes=tuple(holders), used=500, util=42)


def test_labels_of_a_pod_stand_with_label_rows_before_the_attributes() -> None:
    row = Counter("DCGM_FI_DRIVER_VERSION", "DCGM_FI_DRIVER_VERSION", "label", "", is_double=False)
    (line,) = [
        each
        for each in lines([card(*ALONE)], SeriesNames(PODS), None, row)
        if each.startswith(TEMP)
    ]
    assert re.findall(r'(\w+)="', line)[-7:] == [
        "Hostname",
        "DCGM_FI_DRIVER_VERSION",
        "app",
        "team",
        "container",
        "namespace",
        "pod",
    ]
    assert 'app="train",team="vision",container="main",namespace="research",pod="job-1"' in line


def test_an_unused_card_and_a_shared_one_carry_no_pods_labels() -> None:
    shared = [process("job-1", "share", 100, 1000, 5), process("b", "share", 100, 1000, 5)]
    found = lines([card(*ALONE), card(index=1), card(*shared, index=2)], SeriesNames(PODS))
    assert ["app=" in line for line in found if line.startswith(TEMP)] == [True, False, False]


def test_without_kubernetes_no_pod_is_named() -> None:
    assert "app=" not in "".join(
        lines([card(*ALONE)], SeriesNames(PODS), DcgmLabels(has_pods=False))
    )


def test_the_api_servers_uid_counts_and_the_kubelets_where_it_is_silent() -> None:
    for pods, uid in ((PODS, "uid-of-the-api"), ({}, "uid-job-1")):
        assert (
            f'pod_uid="{uid}"'
            in lines([card(*ALONE)], SeriesNames(pods), DcgmLabels(has_pod_uids=True))[0]
        )


def test_instances_carry_their_own_pods_labels() -> None:
    part = MigInstance(
        9, 0, "1g.18gb", "MIG-a", {USED: 4100}, processes=(process("job-1", "mig", 4096, 20096, 0),)
    )
    found = lines([device(0, instances=(part,))], SeriesNames(PODS))
    assert ["app=" in line for line in found if line.startswith((USED, TEMP))] == [True, False]


def test_a_card_of_several_jobs_is_printed_for_each() -> None:
    part = MigInstance(9, 0, "1g.18gb", "MIG-a", {USED: 4100})
    names = SeriesNames(jobs={"0": ("17", "18"), "1.9": ("19",), "7": ("20",)})
    found = lines([card(), device(1, instances=(part,))], names)
    assert re.findall(
        r'hpc_job="(\d+)"', "".join(line for line in found if line.startswith(USED))
    ) == ["17", "18", "19"]
    assert [re.findall(r'hpc_job="(\d+)"', line) for line in found if line.startswith(TEMP)] == [
        ["17"],
        ["18"],
        [],
    ]
    assert [
        re.findall(
            (
                r'err_code="0",err_msg="No '
                r'Error",hpc_job="(\d+)"'
            ),
            line,
        )
        for line in found
        if line.startswith(XID)
    ][:2] == [
        ["17"],
        ["18"],
    ]


def test_virtual_gpus_repeat_each_series_with_what_is_the_containers_own() -> None:
    one = structs.replace(process("a", "timeslice", 300, 15360, 30.4), replica="0")
    idle = structs.replace(process("b", "timeslice", 0, 15360, 0), replica="1")
    found = lines([card(one, idle)], SeriesNames(PODS), DcgmLabels(has_virtual_gpus=True))
    for field, values in (
        (UTIL, ["42", "30", "0"]),
        (USED, ["500", "300", "0"]),
        (TEMP, ["61", "61", "61"]),
    ):
        of_field = [line for line in found if line.startswith(field)]
        assert [line.rpartition(" ")[2] for line in of_field] == values
        assert ["vgpu=" in line for line in of_field] == [False, True, True], (
            "the device's own series stays"
        )
        assert 'container="main",namespace="research",pod="b",vgpu="1"' in of_field[2]
    alone = lines([card(*ALONE)], SeriesNames(), DcgmLabels(has_virtual_gpus=True))
    assert len([line for line in alone if line.startswith(TEMP)]) == 1, (
        "who has a card alone has it once"
    )


def test_a_claims_labels_stand_among_the_attributes_and_only_where_they_are_asked_for() -> None:
    claimed = structs.replace(
        ALONE[0],
        claim={
            "dra_claim_name": "claim-x",
            "dra_driver_name": "gpu.nvidia.com",
            "dra_mig_profile": "",
        },
    )
    found = lines(
        [card(claimed), card(*ALONE, index=1)], SeriesNames(), DcgmLabels(has_claims=True)
    )
    first, second = (line for line in found if line.startswith(TEMP))
    assert (
        'container="main",dra_claim_name="claim-x",dra_driver_name="gpu.nvidia.com",namespace="research"'
        in first
    )
    assert "dra_" not in second + "".join(lines([card(claimed)], SeriesNames()))


@pytest.mark.parametrize(
    ("labels", "patterns", "printed"),
    [
        (
            {"app.kubernetes.io/name": "x", "team": "y"},
            [],
            {"app_kubernetes_io_name": "x", "team": "y"},
        ),
        ({"app": "x", "application": "y", "team": "z"}, ["^app$", "ea"], {"app": "x", "team": "z"}),
        ({"a-b": "1", "a.b": "2", "a_b": "3"}, [], {"a_b": "1"}),
        ({"9lives": "x", "größe": "y"}, [], {"_9lives": "x", "gr__e": "y"}),
        (
            {
                "pod": "forged",
                "UUID": "GPU-x",
                "gpu": "7",
                "namespace": "kube-system",
                "Hostname": "h",
                "vgpu": "1",
            },
            [],
            {},
        ),
        ({"__name__": "x", "..name": "y"}, [], {}),
        (
            {
                "exported_pod": "o",
                "exported.namespace": "o",
                "exported-container": "o",
                "exported_x": "o",
                "team": "y",
            },
            [],
            {"team": "y"},
        ),
        (
            {"job": "o", "instance": "o", "endpoint": "o", "service": "o", "jobs": "y"},
            [],
            {"jobs": "y"},
        ),
        ({"job": "o", "exported_pod": "o"}, ["job|pod"], {}),
        (
            {"app-kubernetes-io/name": "o", "app.kubernetes.io/name": "y"},
            [],
            {"app_kubernetes_io_name": "y"},
        ),
        (
            {"app_kubernetes_io_name": "o", "app.kubernetes.io/name": "y"},
            [],
            {"app_kubernetes_io_name": "y"},
        ),
    ],
)
def test_labels_get_names_that_prometheus_takes_and_none_of_fairlead(
    labels: dict[str, str], patterns: list[str], printed: dict[str, str]
) -> None:
    assert printed_labels(labels, [re.compile(pattern) for pattern in patterns]).labels == printed


def test_a_value_with_quotes_and_lines_stays_one_value() -> None:
    names = SeriesNames({("research", "job-1"): PodIdentity("u", {"note": 'a"b\\c\nd' * 1000})})
    (line,) = [each for each in lines([card(*ALONE)], names) if each.startswith(TEMP)]
    assert 'note="a\\"b\\\\c\\nd' in line


def test_a_field_of_one_link_carries_the_links_labels_in_place_of_its_cards() -> None:
    rate = "DCGM_FI_PROF_NVLINK_L3_TX_BYTES"
    counters = [
        Counter(field, field, "gauge", "")
        for field in (rate, "DCGM_FI_DEV_NVLINK_BANDWIDTH_L17", "DCGM_FI_DEV_GPU_UTIL")
    ]
    counters.append(Counter("DCGM_FI_DRIVER_VERSION", "DCGM_FI_DRIVER_VERSION", "label", ""))
    card = device(0, processes=(process("a", "exclusive", 300, 15360, 10),))
    card = structs.replace(
        card, fields={**card.fields, rate: 7, "DCGM_FI_DEV_NVLINK_BANDWIDTH_L17": 9}
    )
    families = dcgm_families([card, device(1)], counters, DcgmLabels())
    page = b"".join(render_page(families, render_dcgm_number)).decode()
    reported = [line for line in page.splitlines() if "_L3_" in line or "_L17" in line]
    assert [line for line in reported if not line.startswith("#")] == [
        f'{rate}{{nvlink="3",gpu="0",gpu_uuid="GPU-gpu-1-0",pci_bus_id="{card.pci_bus_id}",'
        'device="nvidia0",model_name="Tesla T4",Hostname="gpu-1",'
        f'DCGM_FI_DRIVER_VERSION="{card.driver_version}",container="main",namespace="research",'
        'pod="a"} 7',
        f'DCGM_FI_DEV_NVLINK_BANDWIDTH_L17{{nvlink="17",gpu="0",gpu_uuid="GPU-gpu-1-0",pci_bus_id="{card.pci_bus_id}",device="nvidia0",'
        'model_name="Tesla '
        f'T4",Hostname="gpu-1",DCGM_FI_DRIVER_VERSION="{card.driver_version}",container="main",namespace="research",'
        'pod="a"} 9',
    ]
    assert 'DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-gpu-1-1"' in page


def test_the_links_of_a_divided_card_are_the_boards() -> None:
    rate = "DCGM_FI_PROF_NVLINK_L0_RX_BYTES"
    parts = (MigInstance(1, 0, "3g.71gb", "MIG-a"), MigInstance(7, 0, "1g.18gb", "MIG-b"))
    card = structs.replace(device(0, instances=parts), fields={rate: 5})
    (family,) = dcgm_families(
        [card], [Counter(rate, rate, "gauge", "")], DcgmLabels(repeats_card=True)
    )
    assert family.values == [5], "a link is no part of an instance, and counts once"


EVERYTHING = DcgmLabels(
    hostnames=("Hostname", "hostname"),
    has_pod_uids=True,
    has_virtual_gpus=True,
    has_claims=True,
    repeats_card=True,
)


@pytest.mark.parametrize("labels", [EVERYTHING, structs.replace(EVERYTHING, has_old_names=True)])
def test_a_pod_label_never_stands_beside_one_of_fairlead_of_its_name(labels: DcgmLabels) -> None:
    """A pod may have a label with the same name as any label of the page. Prometheus rejects a page
    on which a series has a label name twice.
    """
    link = Counter(
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_L3", "DCGM_FI_DEV_NVLINK_BANDWIDTH_L3", "gauge", ""
    )
    row = Counter("DCGM_FI_DRIVER_VERSION", "DCGM_FI_DRIVER_VERSION", "label", "")
    made = [
        Counter(name, name, "gauge", "")
        for name in (P2P_STATUS, XID_COUNT, CLOCK_COUNT, HEALTH_STATUS)
    ]
    one = structs.replace(card(*ALONE), peers={1: 5}, throttle_reasons=1)
    one = structs.replace(
        one,
        fields={**one.fields, link.field: 7},
        xids=(XidEvent(79, 1, 1000.0),),
        health_checks={"ecc": 1},
    )
    metrics = ComputedMetrics()
    metrics.of([one], 0.0, 1000.0)
    rows = metrics.of([one], 10.0, 1010.0)
    counters = [*COUNTERS, link, row, *made]

    def names_of(pod: dict[str, str]) -> dict[str, tuple[str, ...]]:
        pods = SeriesNames({("research", "job-1"): PodIdentity("u", pod)}, jobs={"0": ("17",)})
        return {
            family.name: family.metric.labels
            for family in dcgm_families([one], counters, labels, rows, pods)
            if family.keys
        }

    own = {name for names in names_of({}).values() for name in names}
    assert {
        "nvlink",
        "gpu_uuid",
        "model_name",
        "peer_gpu",
        "link_status",
        "xid",
        "clock_event",
        "health_watch",
        "hpc_job",
        "vgpu",
    } <= own
    for family, names in names_of(
        dict(printed_labels(dict.fromkeys(own, "of the pod"), []).labels)
    ).items():
        assert len(names) == len(set(names)), f"{family} has a label twice: {names}"
