"""Which container has which card, from the kubelet's list and the agent's grants file.

Specification: docs/spec/telemetry.md#device-ids, docs/spec/telemetry.md#attribution-rules.

The ids of shared memory may be of any card: the grants file has the card that was given. Its rows
are found by the token of the ids, so that a pod that is created anew under its old name does not
inherit them. If a row is missing, the pod's annotations are used. A container that the kubelet no
longer lists has nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance
from fairlead.model.devices.driver import ProcessHome
from fairlead.model.devices.gpu import GpuMode, Grant
from fairlead.model.devices.kubelet import ClaimableCard, ClaimedDevice, GivenShare, HeldDevices
from fairlead.model.devices.series_names import LocalPod
from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU, NVIDIA_GPU_SHARED
from fairlead.rules.devices.ids import token

CARD_RESOURCES: Final = frozenset({NVIDIA_GPU, NVIDIA_GPU_SHARED, "aliyun.com/gpu"})
_BY_INDEX: Final = re.compile(r"nvidia(\d+)", re.ASCII)
_REPLICA: Final = re.compile(r"(?:::|/vgpu)([^/:]+)$", re.ASCII)
_EXCLUSIVE: Final = GpuMode.EXCLUSIVE
_TIMESLICE: Final = GpuMode.TIMESLICE
_MPS: Final = GpuMode.MPS
_SHARE: Final = GpuMode.SHARE
_MIG: Final = GpuMode.MIG
_TOTAL: Final = "DCGM_FI_DEV_FB_TOTAL_BYTES"
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
"""By UUID the card's index and its total memory in bytes, None = unknown."""
LocalPods = Mapping[tuple[str, str], LocalPod]
"""By namespace and name."""
_NO_PODS: Final[LocalPods] = {}
_NO_TOTALS: Final[Mapping[str, int]] = {}


class NodeCards(Struct, frozen=True):
    """What ids can name: cards and instances with their `totals`, and instances' other names.

    The other names are in `aliases`.

    `by_mps`: UUIDs of cards whose programs use MPS.
    """

    totals: Totals
    aliases: Mapping[str, str] = {}
    by_mps: Collection[str] = ()


def node_cards(
    samples: Sequence[DeviceSample],
    by_mps: Collection[str] = (),
    known: Mapping[str, int] = _NO_TOTALS,
) -> NodeCards:
    """The cards of the node with their instances, and older names of the instances.

    Specification: docs/spec/telemetry.md#device-ids.

    `known`: the last known total memory of cards that do not report it now.

    >>> from fairlead.model.devices.device import MigInstance
    >>> parts = (MigInstance(2, 0, "3g.71gb", "MIG-b"),)
    >>> card = DeviceSample("n", 1, 1, "GPU-a", "", "", "", None, {}, instances=parts)
    >>> node_cards([card]).aliases
    {'MIG-GPU-a/2/0': 'MIG-b', 'nvidia1/gi2': 'MIG-b'}
    """

    def total(entity: DeviceSample | MigInstance) -> int | None:
        values = entity.fields.get(_TOTAL)
        return known.get(entity.uuid) if values is None else int(values)

    totals: dict[str, tuple[int, int | None]] = {}
    aliases: dict[str, str] = {}
    for sample in samples:
        if sample.uuid:
            totals[sample.uuid] = (sample.index, total(sample))
        for each in sample.instances:
            if each.uuid:
                totals[each.uuid] = (-1, total(each))
                aliases[f"MIG-{sample.uuid}/{each.gpu_instance}/{each.compute_instance}"] = (
                    each.uuid
                )
                aliases.setdefault(f"nvidia{sample.index}/gi{each.gpu_instance}", each.uuid)
    return NodeCards(totals, aliases, by_mps)


def device_processes(
    held: Iterable[HeldDevices],
    given: Iterable[GivenShare],
    cards: NodeCards | Totals,
    more: Collection[str] = (),
    claims: Claims = _NO_CLAIMS,
    pods: LocalPods = _NO_PODS,
) -> dict[str, tuple[DeviceProcess, ...]]:
    """By UUID of a card, the containers that have it or a part of it, by name.

    What they use is not known here. `held`: the kubelet's list of pod resources, which has names,
    and its checkpoint, which has uids. An id of a card or instance that is not in `cards` names
    nothing. `more`: resources whose ids are whole cards, beside the usual ones. `claims`: the cards
    that resource claims can name. `pods`: pods from the API server, for uids that the kubelet's
    list does not have.
    """
    cards = cards if isinstance(cards, NodeCards) else NodeCards(cards)
    totals = cards.totals
    uuids = {index: uuid for uuid, (index, _) in totals.items()}
    rows: dict[tuple[str, str, str, str], list[GivenShare]] = {}
    for share in given:
        rows.setdefault((share.namespace, share.pod, share.container, share.token), []).append(
            share
        )
    found: dict[str, dict[tuple[str, str, str], DeviceProcess]] = {}
    held = tuple(held)
    uids = {(each.resource, each.ids): each.pod_uid for each in held if each.pod_uid}
    for each in held:
        if not each.pod:
            continue
        who = (each.namespace, each.pod, each.container)
        if each.resource == GPU_MEMORY:
            shares = rows.get((*who, token(GPU_MEMORY, each.ids)), ())
            for share in shares or _annotated(each, pods, uuids):
                found.setdefault(share.grant.uuid, {})[who] = _shared(share)
        elif each.claimed is not None:
            card = claims.get((each.claimed.driver, each.claimed.pool, each.claimed.device))
            if card is not None and card.uuid in totals:
                mode = _MIG if card.uuid.startswith("MIG-") else _EXCLUSIVE
                process = _process(*who, "", mode, totals[card.uuid][1])
                found.setdefault(card.uuid, {})[who] = structs.replace(
                    process, claim=_claim(each.claimed, card)
                )
        elif _names_cards(each.resource, more):
            for device_id in each.ids:
                uuid, mode = _card_of(device_id, uuids, cards)
                if uuid in totals:
                    process = _process(
                        *who, uids.get((each.resource, each.ids), ""), mode, totals[uuid][1]
                    )
                    found.setdefault(uuid, {})[who] = structs.replace(
                        process, replica=_replica(device_id)
                    )
    return {
        uuid: tuple(_known(process, pods) for _, process in sorted(by_name.items()))
        for uuid, by_name in found.items()
    }


def _names_cards(resource: str, more: Collection[str]) -> bool:
    return resource in CARD_RESOURCES or resource in more or resource.startswith(_MIG_RESOURCE)


def unnamed_cards(
    held: Iterable[HeldDevices], cards: NodeCards, more: Collection[str] = ()
) -> Mapping[str, str]:
    """UUIDs of cards and instances that containers have, and the resource, whose ids are not read.

    Their holders are unknown. `more`: as in `device_processes`.
    """
    uuids = {index: uuid for uuid, (index, _) in cards.totals.items()}
    found: dict[str, str] = {}
    for each in held:
        if (
            each.pod
            and each.resource != GPU_MEMORY
            and each.claimed is None
            and not _names_cards(each.resource, more)
        ):
            named = (_card_of(device_id, uuids, cards)[0] for device_id in each.ids)
            found |= dict.fromkeys((uuid for uuid in named if uuid in cards.totals), each.resource)
    return found


def unplaced(
    held: Iterable[HeldDevices], given: Iterable[GivenShare], pods: LocalPods = _NO_PODS
) -> frozenset[str]:
    """Containers with shared memory (`ns/pod/container`) on an unknown card."""
    rows = {(share.namespace, share.pod, share.container, share.token) for share in given}
    return frozenset(
        f"{each.namespace}/{each.pod}/{each.container}"
        for each in held
        if each.pod and each.resource == GPU_MEMORY
        if (each.namespace, each.pod, each.container, token(GPU_MEMORY, each.ids)) not in rows
        if not _grants(each, pods)
    )


def _grants(held: HeldDevices, pods: LocalPods) -> Sequence[Grant]:
    pod = pods.get((held.namespace, held.pod))
    return () if pod is None else pod.grants.get(held.container, ())


def _annotated(held: HeldDevices, pods: LocalPods, uuids: Mapping[int, str]) -> list[GivenShare]:
    """The shares in a pod's annotations, as rows of the grants file.

    Older annotations have indexes only.
    """
    grants = [
        structs.replace(grant, uuid=grant.uuid or uuids.get(grant.index, ""))
        for grant in _grants(held, pods)
    ]
    uid, number = (
        pods[held.namespace, held.pod].kubelet_uid if grants else "",
        token(GPU_MEMORY, held.ids),
    )
    return [
        GivenShare(held.namespace, held.pod, uid, held.container, grant, number)
        for grant in grants
        if grant.uuid
    ]


def _known(process: DeviceProcess, pods: LocalPods) -> DeviceProcess:
    """With the uid that the cgroups of its processes contain, if it is known."""
    pod = pods.get((process.namespace, process.pod)) if not process.pod_uid else None
    return process if pod is None else structs.replace(process, pod_uid=pod.kubelet_uid)


def named_homes(homes: Mapping[int, ProcessHome], pods: LocalPods) -> Mapping[int, ProcessHome]:
    """The same, with the names of containers whose ids the API server knows."""
    names = {number: name for pod in pods.values() for number, name in pod.containers.items()}
    if not names:
        return homes
    return {
        pid: structs.replace(home, container=names.get(home.container_id, ""))
        for pid, home in homes.items()
    }


def homeless(homes: Mapping[int, ProcessHome], containers: Sequence[DeviceProcess]) -> set[int]:
    """Processes in pods without a known grant: the kubelet's list may have changed since."""
    uids = {each.pod_uid for each in containers}
    return {pid for pid, home in homes.items() if home.pod_uid and home.pod_uid not in uids}


def _card_of(device_id: str, uuids: Mapping[int, str], cards: NodeCards) -> tuple[str, GpuMode]:
    """The card or instance of an id, "" if it names none, and how its holder has it.

    >>> cards = NodeCards({}, {"nvidia1/gi2": "MIG-c"})
    >>> ids = ("GPU-a", "GPU-a::3", "nvidia1", "nvidia1/gi2/vgpu0", "MIG-a", "a")
    >>> [_card_of(each, {1: "GPU-b"}, cards)[0] for each in ids]
    ['GPU-a', 'GPU-a', 'GPU-b', 'MIG-c', 'MIG-a', '']
    """
    replica = _REPLICA.search(device_id)
    named = device_id[: replica.start()] if replica else device_id
    by_index = _BY_INDEX.fullmatch(named)
    uuid = uuids.get(int(by_index[1]), "") if by_index else cards.aliases.get(named, named)
    if not uuid.startswith(("GPU-", "MIG-")):
        return "", _EXCLUSIVE
    if replica:
        return uuid, _MPS if uuid in cards.by_mps else _TIMESLICE
    return uuid, _MIG if uuid.startswith("MIG-") else _EXCLUSIVE


def _claim(device: ClaimedDevice, card: ClaimableCard) -> Mapping[str, str]:
    """The labels of DCGM's series for a claimed device."""
    instance = card.uuid if card.uuid.startswith("MIG-") else ""
    values = (
        device.claim,
        device.claim_namespace,
        device.driver,
        device.pool,
        device.device,
        card.profile,
        instance,
    )
    return dict(zip(CLAIM_LABELS, values, strict=True))


def _replica(device_id: str) -> str:
    """The time slice that an id names.

    >>> _replica("GPU-a::3"), _replica("nvidia0/vgpu1"), _replica("GPU-a")
    ('3', '1', '')
    """
    match = _REPLICA.search(device_id)
    return match[1] if match else ""


def _shared(share: GivenShare) -> DeviceProcess:
    grant = share.grant
    core = grant.core_percent / 100 if grant.core_percent else None
    limit = None if grant.memory_mib is None else grant.memory_mib << 20
    process = _process(
        share.namespace, share.pod, share.container, share.pod_uid, _SHARE, limit, core
    )
    return structs.replace(process, token=share.token)


def _process(
    namespace: str,
    pod: str,
    container: str,
    uid: str,
    mode: GpuMode,
    limit_bytes: int | None,
    core: float | None = None,
) -> DeviceProcess:
    return DeviceProcess(
        namespace,
        pod,
        container,
        uid,
        mode,
        None,
        limit_bytes,
        None,
        processes=None,
        core_limit_ratio=core,
    )
