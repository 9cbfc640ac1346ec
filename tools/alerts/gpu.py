"""Rules about GPUs: what the driver reports, what is lost, hot, worn or idle.

See docs/spec/telemetry.md#recording-rules-and-alerts.
"""

from __future__ import annotations

from typing import Final

from alerts.rule import Alert, Group, Recording
from fairlead.model.devices.xid import CRITICAL, WARNING

CARD: Final = "GPU {{ $labels.gpu }} of {{ $labels.node_name }} ({{ $labels.uuid }})"
XID_SECONDS: Final = 600
HOT_CELSIUS: Final = 87
"""`HOT_CELSIUS`: limit for a card that does not report the temperature at which it slows down."""
HOT_MARGIN: Final = 5
BUSY_RATIO: Final = 0.5
IDLE_RATIO: Final = 0.01
CORRECTED_ERRORS_MAX: Final = 100
PCIE_REPLAYS_MAX: Final = 10
FOREIGN_BYTES_MAX: Final = 256 << 20

_CHIP: Final = 'fairlead_gpu_temperature_celsius{sensor="gpu"}'
_SLOWDOWN: Final = "fairlead_gpu_temperature_slowdown_celsius"
_HOT: Final = (
    f"({_CHIP} > on (node_name, gpu, uuid, model) group_left () (max by (node_name, gpu, "
    f"uuid, model) ({_SLOWDOWN}) - {HOT_MARGIN})"
    f" or ({_CHIP} > {HOT_CELSIUS} unless on (node_name, uuid) {_SLOWDOWN}))"
)
_LINKS_UP: Final = (
    "sum by (node_name, gpu, uuid, model) (max by (node_name, gpu, uuid, model, link) ({}))"
)
_DIVIDED: Final = 'unless on (node_name, uuid) fairlead_gpu_info{mig_mode="enabled"}'
_LINKS_OF_THE_DAY: Final = _LINKS_UP.format("max_over_time(fairlead_gpu_nvlink_up[1d])")
_SLOW_PCIE: Final = (
    "max_over_time(fairlead_gpu_pcie_link_generation[15m]) < fairlead_gpu_pcie_link_generation_max"
    f" and on (node_name, uuid) max_over_time(fairlead_gpu_utilization_ratio[15m]) > {BUSY_RATIO}"
)
"""Cards that worked, but not at their highest PCIe generation in the last minutes.

The generation falls while a card is idle, so the highest value of the window counts.
"""

NOT_LOST: Final = "unless on (node_name, uuid) fairlead_gpu_up == 0"
NOT_WITHOUT_DRIVER: Final = "unless on (node_name) fairlead_exporter_nvml_up == 0"

CARD_KEY: Final = "node_name, gpu, uuid, model, mig_gi_id, mig_profile"
"""Labels that identify a card, or a part of one, for every exporter pod and Prometheus job."""

_DRAIN: Final = (
    "Cordon the node (`kubectl cordon NODE`), let the jobs on the card end or move them, then "
    "restart the node, or reset the card"
    " (`kubectl label node NODE fairlead.io/gpu-maintenance=`, so that agent and exporter "
    "release it; `nvidia-smi --gpu-reset -i INDEX`"
    " on the node; remove the label), and `kubectl uncordon NODE`."
)
_REPLACE: Final = (
    "If it comes back after a reset, take the node out of service and have the card replaced."
)
_WHO: Final = 'fairlead_container_gpu_memory_used_bytes{node_name="NODE",gpu="INDEX"}'


def _classed(codes: frozenset[int]) -> str:
    pattern = "|".join(str(code) for code in sorted(codes))
    return f'time() - fairlead_gpu_xid_last_timestamp_seconds{{xid=~"{pattern}"}} < {XID_SECONDS}'


RECORDINGS: Final = (
    Recording(
        "fairlead:gpu_memory_used:ratio",
        "fairlead_gpu_memory_used_bytes / fairlead_gpu_memory_total_bytes",
        "Used part of a card's memory.",
    ),
    Recording(
        "fairlead:gpu_utilization:avg30m",
        f"max by ({CARD_KEY}) (avg_over_time(fairlead_gpu_utilization_ratio[30m]))",
        "A card's mean utilization over half an hour, across restarts of its exporter.",
    ),
    Recording(
        "fairlead:cluster_gpu_utilization:avg1h",
        "avg_over_time(fairlead_cluster_gpu_utilization_ratio[1h])",
        "The cluster's mean utilization over an hour.",
    ),
    Recording(
        "fairlead:namespace_gpus_allocated:sum",
        "sum by (namespace_name) (max by (node_name, uuid, namespace_name, pod_name, "
        "container_name)"
        ' (fairlead_container_gpu_memory_limit_bytes{allocate_mode=~"exclusive|share"})'
        " / on (node_name, uuid) group_left () max by (node_name, uuid) "
        "(fairlead_gpu_memory_grantable_bytes))",
        "GPUs that a namespace holds; of a shared card the part that its containers were granted.",
    ),
)

ALERTS: Final = (
    Alert(
        "GpuXidCritical",
        _classed(CRITICAL),
        "critical",
        "XID {{ $labels.xid }} on GPU {{ $labels.gpu }} of {{ $labels.node_name }}",
        f"The driver reported XID {{{{ $labels.xid }}}} on {CARD} within the last ten "
        "minutes. The card cannot be trusted with work:"
        " look at the kernel's log, drain the node and reset the card.",
        "The driver reported an error after which the card, its memory or its firmware cannot "
        "be trusted, or after which it is gone"
        " (79). Faults of programs (13, 31, 43, 45, 68, 109) never raise this.",
        (
            "$ kubectl describe node NODE",
            'fairlead_gpu_xid_last_timestamp_seconds{node_name="NODE"}',
            _WHO,
        ),
        "Read the kernel's log of the node (`dmesg | grep Xid`): it names the process. "
        f"{_DRAIN} {_REPLACE}"
        " While this alert is there, the other alerts of the same card are not sent.",
    ),
    Alert(
        "GpuXidWarning",
        _classed(WARNING),
        "warning",
        "XID {{ $labels.xid }} on GPU {{ $labels.gpu }} of {{ $labels.node_name }}",
        f"The driver reported XID {{{{ $labels.xid }}}} on {CARD} within the last ten "
        "minutes. The card works on; watch whether it"
        " repeats, and plan a reset.",
        "The driver remapped a row of memory (63), had many corrected memory errors (92), "
        "contained an uncorrected one to its program"
        " (94), or requests a recovery action (154).",
        ('fairlead_gpu_xid_errors_total{node_name="NODE"} > 0', "fairlead_gpu_recovery_action > 0"),
        "94: the program on the card has ended, start it again. 63 and 92: let the node's "
        "jobs end and reset the card in the next"
        f" pause. 154: follow FairleadGpuRecoveryNeeded. {_REPLACE}",
    ),
    Alert(
        "GpuEccUncorrected",
        'increase(fairlead_gpu_ecc_errors_total{severity="uncorrected",scope="volatile"}[10m]) > 0',
        "critical",
        "Uncorrected memory errors on GPU {{ $labels.gpu }} of {{ $labels.node_name }}",
        f"{CARD} had memory errors within the last ten minutes that ECC could not correct: "
        "results of what ran on it may be wrong."
        " Drain the node and reset the card.",
        (
            "Memory of the card returned wrong data. The program that read it was stopped or "
            "computes with wrong data."
        ),
        ('fairlead_gpu_ecc_errors_total{node_name="NODE",severity="uncorrected"}', _WHO),
        f"Inform the owner of the job that its results cannot be trusted. {_DRAIN} {_REPLACE}",
    ),
    Alert(
        "GpuEccCorrectedHigh",
        (
            f'increase(fairlead_gpu_ecc_errors_total{{severity="corrected",scope="volatile"}}[1h]) '
            f"> {CORRECTED_ERRORS_MAX}"
        ),
        "warning",
        "Many corrected memory errors on GPU {{ $labels.gpu }} of {{ $labels.node_name }}",
        (
            f"ECC corrected {{{{ $value | humanize }}}} memory errors of {CARD} within an hour. "
            "Nothing is lost yet; plan a reset."
        ),
        (
            "The card corrects far more memory errors than a healthy one. Uncorrected ones often "
            "follow."
        ),
        (
            'increase(fairlead_gpu_ecc_errors_total{node_name="NODE"}[1h])',
            'fairlead_gpu_remapped_rows_total{node_name="NODE"}',
        ),
        f"Let the jobs end, then reset the card, so that rows can be remapped. {_REPLACE}",
    ),
    Alert(
        "GpuRowRemapFailed",
        "fairlead_gpu_row_remap_failed == 1",
        "critical",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} has no spare memory rows left",
        (
            f"{CARD} could not remap a bad row of its memory. Drain the node; the card has to be "
            "replaced."
        ),
        (
            "A row of memory is bad and there is no spare one to take its place. A reset does not "
            "help."
        ),
        (
            'fairlead_gpu_row_remap_failed{node_name="NODE"}',
            'fairlead_gpu_remapped_rows_total{node_name="NODE"}',
        ),
        "Cordon the node (`kubectl cordon NODE`), move the jobs, and have the card replaced.",
    ),
    Alert(
        "GpuRowRemapPending",
        "fairlead_gpu_row_remap_pending == 1",
        "warning",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} waits for a reset to remap memory",
        (
            f"{CARD} has had remapped rows for an hour that take effect with its next reset. "
            "Reset it in the next pause of the node."
        ),
        "The driver found a bad row of memory; the spare row is used from the next reset on.",
        ('fairlead_gpu_row_remap_pending{node_name="NODE"}', _WHO),
        _DRAIN,
        hold="1h",
    ),
    Alert(
        "GpuPagesPending",
        "fairlead_gpu_retired_pages_pending == 1",
        "warning",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} waits for a reset to retire memory pages",
        (
            f"{CARD} has had pages to retire for an hour, which takes effect with its next reset. "
            "Reset it in the next pause of the node."
        ),
        (
            "The same as FairleadGpuRowRemapPending on cards before Ampere, which retire pages of "
            "memory."
        ),
        ('fairlead_gpu_retired_pages_pending{node_name="NODE"}', _WHO),
        _DRAIN,
        hold="1h",
    ),
    Alert(
        "GpuThermalThrottle",
        'fairlead_gpu_throttled{reason="hw_thermal"} == 1',
        "warning",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} is slowed down by heat",
        (
            f"The hardware holds the clocks of {CARD} down because it is too hot. Look at fans "
            "and air flow of the node."
        ),
        "The card protects itself: jobs on it run at a fraction of their speed.",
        (
            'fairlead_gpu_temperature_celsius{node_name="NODE"}',
            'rate(fairlead_gpu_throttle_seconds_total{node_name="NODE"}[5m])',
        ),
        (
            "Look at the fans, the air flow and the room's temperature. Several nodes of one rack "
            "at once: it is the room."
        ),
        hold="5m",
    ),
    Alert(
        "GpuPowerBrake",
        'fairlead_gpu_throttled{reason="hw_power_brake"} == 1',
        "warning",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} is slowed down by the power supply",
        (
            f"The node's power supply holds the clocks of {CARD} down. Look at the supply and its "
            "feed."
        ),
        (
            "The server asserts the power brake: it has less power than its cards draw, often "
            "because one of its supplies is gone."
        ),
        (
            'fairlead_gpu_throttled{node_name="NODE",reason="hw_power_brake"}',
            'fairlead_gpu_power_watts{node_name="NODE"}',
        ),
        "Look at the supplies in the server's management controller, and at the feed of the rack.",
        hold="5m",
    ),
    Alert(
        "GpuHot",
        _HOT,
        "warning",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} is at {{ $value }} °C",
        (
            f"{CARD} has been at {{{{ $value }}}} °C for ten minutes. Look at fans and air flow "
            "before the hardware slows it down."
        ),
        f"The chip is within {HOT_MARGIN} °C of the temperature at which the hardware slows "
        "it down (reported by the card);"
        f" for a card that does not report it, above {HOT_CELSIUS} °C. The memory's sensor is "
        "left out: memory may be hotter.",
        (
            'fairlead_gpu_temperature_celsius{node_name="NODE"}',
            'fairlead_gpu_temperature_slowdown_celsius{node_name="NODE"}',
            'fairlead_gpu_power_watts{node_name="NODE"}',
        ),
        "As FairleadGpuThermalThrottle, while there is time.",
        hold="10m",
    ),
    Alert(
        "GpuNvlinkErrors",
        "increase(fairlead_gpu_nvlink_errors_total[10m]) > 0",
        "warning",
        "NVLink errors ({{ $labels.type }}) on GPU {{ $labels.gpu }} of {{ $labels.node_name }}",
        (
            f"A link of {CARD} had errors within the last ten minutes. Watch whether they go on; "
            "collective operations become slow or fail."
        ),
        "Data between cards had to be sent again, or a link had to be brought up again.",
        (
            'increase(fairlead_gpu_nvlink_errors_total{node_name="NODE"}[1h])',
            "$ kubectl describe node NODE",
        ),
        f"A single error after a restart is nothing. Errors that go on: {_DRAIN} {_REPLACE}",
    ),
    Alert(
        "GpuPcieReplays",
        f"increase(fairlead_gpu_pcie_replays_total[1h]) > {PCIE_REPLAYS_MAX}",
        "warning",
        "PCIe retries on GPU {{ $labels.gpu }} of {{ $labels.node_name }}",
        (
            f"{CARD} had {{{{ $value | humanize }}}} PCIe retries within an hour. Look at its "
            "seat, riser and cable."
        ),
        (
            "Packets between card and host were damaged on their way. Copies become slow; the "
            "card may fall off the bus."
        ),
        (
            'increase(fairlead_gpu_pcie_replays_total{node_name="NODE"}[1h])',
            'rate(fairlead_gpu_pcie_bytes_total{node_name="NODE"}[5m])',
        ),
        "In the next pause of the node: seat the card anew, look at riser and cable.",
    ),
    Alert(
        "GpuPcieNarrow",
        "fairlead_gpu_pcie_link_width < fairlead_gpu_pcie_link_width_max",
        "warning",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} has {{ $value }} PCIe lanes only",
        f"The PCIe link of {CARD} works with {{{{ $value }}}} lanes, fewer than the card and "
        "its slot have. Copies between host and card"
        " are slow.",
        "Some lanes of the link do not work: a bad contact, riser or cable, or the card.",
        (
            'fairlead_gpu_pcie_link_width{node_name="NODE"}',
            'fairlead_gpu_pcie_link_width_max{node_name="NODE"}',
        ),
        "In the next pause of the node: seat the card anew, look at riser and cable. A slot "
        "that shares its lanes by a setting of the"
        " firmware is no fault; silence the alert for it.",
        hold="15m",
    ),
    Alert(
        "GpuPcieSlow",
        _SLOW_PCIE,
        "warning",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} has a slow PCIe link",
        f"The PCIe link of {CARD} stayed at generation {{{{ $value }}}} although the card "
        "works; the card and its slot have a higher one."
        " Copies between host and card are slow.",
        "The link was trained to a lower generation: a bad contact, riser or cable, or a "
        "setting of the firmware. While a card rests its"
        " link falls by itself; that raises nothing.",
        (
            'fairlead_gpu_pcie_link_generation{node_name="NODE"}',
            'fairlead_gpu_pcie_link_generation_max{node_name="NODE"}',
        ),
        (
            "In the next pause of the node: seat the card anew, look at riser and cable and at "
            "the firmware's setting of the slot."
        ),
        hold="15m",
    ),
    Alert(
        "GpuNvlinkDown",
        f"{_LINKS_UP.format('fairlead_gpu_nvlink_up')}"
        f" < on (node_name, model) group_left () max by (node_name, model) ({_LINKS_OF_THE_DAY})",
        "warning",
        "NVLinks of GPU {{ $labels.gpu }} of {{ $labels.node_name }} are down",
        f"{CARD} has {{{{ $value }}}} NVLinks, fewer than it had within the last day, or than "
        "another card of its model on this node has."
        " Collective operations become slow or fail.",
        "A link that was up is down, or never came up. A card without NVLink, a card divided "
        "by MIG, and cards of a node that all have"
        " the same links raise nothing.",
        (
            'fairlead_gpu_nvlink_up{node_name="NODE"} == 0',
            'increase(fairlead_gpu_nvlink_errors_total{node_name="NODE"}[1d])',
        ),
        "`nvidia-smi nvlink --status` on the node shows the same. On machines with NVSwitch "
        "look at the fabric manager."
        f" {_DRAIN} {_REPLACE}",
        hold="5m",
        but_not=(_DIVIDED,),
    ),
    Alert(
        "GpuEccOff",
        "fairlead_gpu_ecc_mode == 0",
        "warning",
        "ECC is off on GPU {{ $labels.gpu }} of {{ $labels.node_name }}",
        (
            f"The memory of {CARD} is not protected by ECC: wrong bits are neither corrected nor "
            "reported."
        ),
        (
            "The card has ECC and it is switched off. Memory errors then change results without "
            "any report."
        ),
        (
            'fairlead_gpu_ecc_mode{node_name="NODE"}',
            'fairlead_gpu_ecc_mode_pending{node_name="NODE"}',
        ),
        "`nvidia-smi -i INDEX --ecc-config=1` on the node, and a reset of the card. If it is "
        "off on purpose, silence the alert for the"
        " node.",
        hold="1h",
    ),
    Alert(
        "GpuDown",
        "fairlead_gpu_up == 0",
        "critical",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} does not answer",
        (
            f"{CARD} has not answered the driver for two minutes: it is lost, waits for a reset, "
            "or a call hangs. Drain the node."
        ),
        "The card fell off the bus, waits for a reset, or a call of the driver for it has not "
        "come back. Its values are gone from the"
        " page, its identity stays. Without a driver FairleadExporterMissing reports the "
        "whole node.",
        (
            'fairlead_gpu_health_check{node_name="NODE"} > 0',
            'fairlead_exporter_stuck_calls{node_name="NODE"}',
            (
                "$ kubectl -n fairlead-nodes logs -l "
                "app.kubernetes.io/name=fairlead-gpu-exporter --prefix --tail=50"
            ),
        ),
        (
            "`fairlead_exporter_stuck_calls` 1: the driver hangs, never kill processes for it; "
            f"restart the node. Else: {_DRAIN} {_REPLACE}"
        ),
        hold="2m",
        but_not=(NOT_WITHOUT_DRIVER,),
    ),
    Alert(
        "GpuUnhealthy",
        "fairlead_gpu_healthy == 0",
        "critical",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} takes no work",
        (
            f"{CARD} answers and is not healthy: no new pod gets it. `fairlead_gpu_health_check` "
            "shows why."
        ),
        "An XID counts against the card: any but a program's for ten minutes, 48, 64, 79, 95, "
        "119 and 120 until the card is reset. Where"
        " the node's agent judges cards, it gives this card to no pod.",
        ('fairlead_gpu_health_check{node_name="NODE"} > 0', "$ kubectl describe node NODE"),
        f"Follow the alert of that check. {_DRAIN}",
        hold="2m",
        but_not=(NOT_LOST,),
    ),
    Alert(
        "GpuRecoveryNeeded",
        "fairlead_gpu_recovery_action > 0",
        "critical",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} requests recovery action {{ $value }}",
        f"The driver requests action {{{{ $value }}}} on {CARD}: 1 reset, 2 reboot, 3 drain "
        "peers, 4 drain and reset, 5 IMEX, 6 bus reset,"
        " 7 system reboot.",
        "The driver reports what brings the card back: 1 reset, 2 reboot, 3 drain peers, 4 "
        "drain and reset, 5 restart IMEX, 6 bus reset,"
        " 7 reboot of the system.",
        ('fairlead_gpu_recovery_action{node_name="NODE"}', _WHO),
        "Follow the number. For 1 and 4: " + _DRAIN[0].lower() + _DRAIN[1:],
        hold="2m",
        but_not=(NOT_LOST,),
    ),
    Alert(
        "GpuIdleAllocated",
        f"fairlead:gpu_utilization:avg30m < {IDLE_RATIO} and on (node_name, uuid, mig_gi_id)"
        " last_over_time(fairlead_gpu_allocated_ratio[5m]) >= 0.99",
        "warning",
        "GPU {{ $labels.gpu }} of {{ $labels.node_name }} is held and does nothing",
        (
            f"{CARD} has been given away whole for two hours and was hardly used. Ask the owner "
            "of its pod."
        ),
        (
            "A pod holds the whole card, and for two hours its half-hour mean stayed below one "
            "percent."
        ),
        (_WHO, 'fairlead:gpu_utilization:avg30m{node_name="NODE"}'),
        (
            "Ask the owner of the pod to end it or to share a card. A job that waits for its "
            "other workers holds its card, too."
        ),
        hold="2h",
    ),
    Alert(
        "GpuForeignProcess",
        f"fairlead_gpu_memory_foreign_bytes > {FOREIGN_BYTES_MAX}",
        "warning",
        "A program without a grant uses GPU {{ $labels.gpu }} of {{ $labels.node_name }}",
        (
            f"Processes that no container was granted use {{{{ $value | humanize1024 }}}}B of "
            f"{CARD}. Find them on the node and end them."
        ),
        (
            "A process outside Kubernetes, or of a container without a grant of this card, uses "
            "its memory: the holders of grants may run out."
        ),
        (
            'fairlead_gpu_memory_foreign_bytes{node_name="NODE"} > 0',
            'fairlead_gpu_foreign_processes{node_name="NODE"}',
            "$ kubectl debug node/NODE -it --image=busybox",
        ),
        "On the node `nvidia-smi` lists the processes. A container that sees all cards "
        "without a grant has"
        " `NVIDIA_VISIBLE_DEVICES=all` in its image or its pod: remove that.",
        hold="10m",
    ),
)

GROUP: Final = Group("fairlead-gpu", "Cards", RECORDINGS, ALERTS)
