"""Which container has which card, as the kubelet's list and the agent's grants file tell together.

Telemetry contract 2.3, 2.4. The ids of shared memory are of any card: only the grants file says which one was
given, and its rows are found by the token of the ids, so that a pod that was made anew under its old name
does not inherit them. Whoever the kubelet does not list any more has nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import structs

from fairlead.model.devices.device import DeviceProcess
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.kubelet import ClaimableCard, ClaimedDevice, GivenShare, HeldDevices
from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU
from fairlead.rules.devices.ids import token

CARD_RESOURCES: Final = frozenset({NVIDIA_GPU, "aliyun.com/gpu"})
_BY_INDEX: Final = re.compile(r"nvidia(\d+)(/vgpu\d+)?", re.ASCII)
_EXCLUSIVE: Final = GpuMode.EXCLUSIVE
_TIMESLICE: Final = GpuMode.TIMESLICE
_SHARE: Final = GpuMode.SHARE
_MIG: Final = GpuMode.MIG
_MIG_RESOURCE: Final = "nvidia.com/mig-"
_NO_CLAIMS: Final[Mapping[tuple[str, str, str], ClaimableCard]] = {}

CLAIM_LABELS: Final = (
    "dra_claim_name",
    "dra_claim_namespace",
    "dra_driver_name",
    "dra_pool_name",
    "dra_device_name",
    "dra_mig_profile",
    "dra_mig_device_uuid",
)
Claims = Mapping[tuple[str, str, str], ClaimableCard]
"""By driver, pool and device."""
Totals = Mapping[str, tuple[int, int | None]]
"""By UUID the card's index and all its memory in bytes, None = nobody knows."""


def device_processes(
    held: Iterable[HeldDevices], given: Iterable[GivenShare], totals: Totals, more: Collection[str] = (), claims: Claims = _NO_CLAIMS
) -> dict[str, tuple[DeviceProcess, ...]]:
    """By UUID of a card, the containers that have it or a part of it, by name.

    What they use is not known here. `held`: the kubelet's list of pod resources, which has names, and its
    checkpoint, which has uids. `totals`: of MIG instances, too, by their UUIDs; an id of another one names
    nothing. `more`: resources whose ids are of whole cards, beside the usual ones. `claims`: the cards that
    resource claims can name.
    """
    uuids = {index: uuid for uuid, (index, _) in totals.items()}
    rows: dict[tuple[str, str, str, str], list[GivenShare]] = {}
    for share in given:
        rows.setdefault((share.namespace, share.pod, share.container, share.token), []).append(share)
    found: dict[str, dict[tuple[str, str, str], DeviceProcess]] = {}
    held = tuple(held)
    uids = {(each.resource, each.ids): each.pod_uid for each in held if each.pod_uid}
    for each in held:
        if not each.pod:
            continue
        who = (each.namespace, each.pod, each.container)
        if each.resource == GPU_MEMORY:
            for share in rows.get((*who, token(GPU_MEMORY, each.ids)), ()):
                found.setdefault(share.grant.uuid, {})[who] = _shared(share)
        elif each.claimed is not None:
            card = claims.get((each.claimed.driver, each.claimed.pool, each.claimed.device))
            if card is not None and card.uuid in totals:
                mode = _MIG if card.uuid.startswith("MIG-") else _EXCLUSIVE
                process = _process(*who, "", mode, totals[card.uuid][1])
                found.setdefault(card.uuid, {})[who] = structs.replace(process, claim=_claim(each.claimed, card))
        elif each.resource in CARD_RESOURCES or each.resource in more or each.resource.startswith(_MIG_RESOURCE):
            for device_id in each.ids:
                uuid, mode = _card_of(device_id, uuids)
                if uuid in totals:
                    process = _process(*who, uids.get((each.resource, each.ids), ""), mode, totals[uuid][1])
                    found.setdefault(uuid, {})[who] = structs.replace(process, replica=_replica(device_id))
    return {uuid: tuple(process for _, process in sorted(by_name.items())) for uuid, by_name in found.items()}


def _card_of(device_id: str, uuids: Mapping[int, str]) -> tuple[str, GpuMode]:
    """The card or instance of an id, "" where it names none, and how its holder has it.

    >>> [_card_of(each, {1: "GPU-b"})[0] for each in ("GPU-a", "GPU-a::3", "nvidia1", "MIG-a", "a")]
    ['GPU-a', 'GPU-a', 'GPU-b', 'MIG-a', '']
    """
    if match := _BY_INDEX.fullmatch(device_id):
        return uuids.get(int(match[1]), ""), _TIMESLICE if match[2] else _EXCLUSIVE
    uuid, _, replica = device_id.partition("::")
    if uuid.startswith("MIG-"):
        return uuid, _TIMESLICE if replica else _MIG
    return (uuid, _TIMESLICE if replica else _EXCLUSIVE) if uuid.startswith("GPU-") else ("", _EXCLUSIVE)


def _claim(device: ClaimedDevice, card: ClaimableCard) -> Mapping[str, str]:
    """What DCGM's series say of it."""
    instance = card.uuid if card.uuid.startswith("MIG-") else ""
    told = (device.claim, device.claim_namespace, device.driver, device.pool, device.device, card.profile, instance)
    return dict(zip(CLAIM_LABELS, told, strict=True))


def _replica(device_id: str) -> str:
    """Which time slice an id is.

    >>> _replica("GPU-a::3"), _replica("nvidia0/vgpu1"), _replica("GPU-a")
    ('3', '1', '')
    """
    return device_id.partition("::")[2] or device_id.partition("/vgpu")[2]


def _shared(share: GivenShare) -> DeviceProcess:
    grant = share.grant
    core = grant.core_percent / 100 if grant.core_percent else None
    process = _process(share.namespace, share.pod, share.container, share.pod_uid, _SHARE, (grant.memory_mib or 0) << 20, core)
    return structs.replace(process, token=share.token)


def _process(
    namespace: str, pod: str, container: str, uid: str, mode: GpuMode, limit_bytes: int | None, core: float | None = None
) -> DeviceProcess:
    return DeviceProcess(namespace, pod, container, uid, mode, None, limit_bytes, None, processes=None, core_limit_ratio=core)
