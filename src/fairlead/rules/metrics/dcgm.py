"""dcgm-exporter's page from device samples: its names, labels, order and units.

Specification: docs/spec/telemetry.md#format-and-labels-of-dcgm-series.

A field belongs to a card, a MIG instance or an NVLink; NVML reports no NVSwitches. A label without
a value is left out (the families omit empty labels), and a value that a device does not have has no
series, so a family may be absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from fairlead.model.devices.counter import Counter
from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance
from fairlead.model.devices.series_names import SeriesNames
from fairlead.model.devices.xid import xid_text
from fairlead.model.metric import Family, Key, MetricName
from fairlead.rules.devices.attribution import WHOLE_ENTITY, DeviceHolder, device_holder
from fairlead.rules.devices.container_use import percent_of_whole
from fairlead.rules.devices.mig import gpu_instances
from fairlead.rules.devices.pod_devices import CLAIM_LABELS
from fairlead.rules.metrics.dcgm_computed import ComputedRow

_MIB: Final = 1 << 20
_NONE_MADE: Final[Mapping[str, Mapping[tuple[str, str], Sequence[ComputedRow]]]] = {}
_NO_NAMES: Final = SeriesNames()
_OF_A_SHARE: Final[Mapping[str, Callable[[DeviceProcess], int | None]]] = {
    "DCGM_FI_DEV_GPU_UTIL": lambda share: (
        None if (percent := percent_of_whole(share)) is None else round(percent)
    ),
    "DCGM_FI_DEV_FB_USED": lambda share: (
        None if share.memory_used_bytes is None else share.memory_used_bytes // _MIB
    ),
}
"""Fields with a container's own value on a shared card; other fields repeat the card's value.

See docs/spec/telemetry.md#attribution-rules.
"""
_XID_FIELD: Final = "DCGM_FI_DEV_XID_ERRORS"
INSTANCE_FIELDS: Final = frozenset(
    [
        *(
            f"DCGM_FI_DEV_{name}"
            for name in ("FB_TOTAL", "FB_FREE", "FB_USED", "FB_RESERVED", "FB_USED_PERCENT")
        ),
        *(f"DCGM_FI_DEV_BAR1_{name}" for name in ("TOTAL", "USED", "FREE")),
        *(
            f"DCGM_FI_PROF_{name}_ACTIVE"
            for name in (
                "GR_ENGINE",
                "SM",
                "PIPE_TENSOR",
                "DRAM",
                "PIPE_FP64",
                "PIPE_FP32",
                "PIPE_FP16",
            )
        ),
        *(
            f"DCGM_FI_PROF_PIPE_{name}_ACTIVE"
            for name in ("TENSOR_IMMA", "TENSOR_HMMA", "TENSOR_DFMA", "INT")
        ),
        "DCGM_FI_PROF_SM_OCCUPANCY",
    ]
)
"""Fields that each MIG instance has (docs/spec/telemetry.md#mig-instances)."""
_OF_A_LINK: Final = re.compile(r"DCGM_FI_(?:DEV|PROF)_NVLINK(?:_[A-Z_]+)?_L(\d+)", re.ASCII)
_CARD_OF_LINK: Final = ("gpu", "gpu_uuid", "pci_bus_id", "device", "model_name")
"""The labels that a link has from its card, in the order of the card's labels."""
_LABEL_ROWS: Final = {
    "DCGM_FI_DRIVER_VERSION": "driver_version",
    "DCGM_FI_DEV_SERIAL": "serial",
    "DCGM_FI_DEV_VBIOS_VERSION": "vbios_version",
}


class Level(StrEnum):
    """What one series of a field belongs to."""

    GPU = "gpu"
    INSTANCE = "instance"
    LINK = "link"


def level_of(field: str) -> Level:
    """
    >>> print(level_of("DCGM_FI_DEV_GPU_TEMP"), level_of("DCGM_FI_DEV_FB_USED"))
    gpu instance
    >>> print(level_of("DCGM_FI_PROF_NVLINK_L3_TX_BYTES"))
    link
    """
    if field in INSTANCE_FIELDS:
        return Level.INSTANCE
    return Level.LINK if _OF_A_LINK.match(field) else Level.GPU


class DcgmLabels(Struct, frozen=True, gc=False):
    """Which labels are printed, and their names.

    `hostnames`: names of the labels that contain the host, none for --no-hostname. `has_old_names`:
    -o. `has_pods`: labels of pods are printed (--kubernetes); `has_pod_uids`: with their UIDs.
    `repeats_card`: fields of a divided card are printed for each of its MIG instances.
    `has_virtual_gpus`: each series is repeated for each of several containers that share the card.
    `has_claims`: the labels that a resource claim has for a card are printed.
    """

    hostnames: tuple[str, ...] = ("Hostname",)
    has_old_names: bool = False
    has_blanks_replaced: bool = False
    has_pods: bool = True
    has_pod_uids: bool = False
    repeats_card: bool = False
    has_virtual_gpus: bool = False
    has_claims: bool = False

    @property
    def uuid(self) -> str:
        return "uuid" if self.has_old_names else "UUID"

    @property
    def pod(self) -> tuple[str, str, str]:
        """Names of the container, namespace and pod labels."""
        return (
            ("container_name", "pod_namespace", "pod_name")
            if self.has_old_names
            else ("container", "namespace", "pod")
        )


class _Entity(NamedTuple):
    """What one series belongs to: a card, a MIG instance of it, or a container's part (`share`).

    `job`: the HPC job that has it.
    """

    sample: DeviceSample
    instance: MigInstance | None = None
    share: DeviceProcess | None = None
    job: str = ""

    @property
    def processes(self) -> Sequence[DeviceProcess]:
        return self.instance.processes if self.instance else self.sample.processes

    def value(self, field: str) -> float | int | None:
        if self.share is not None and field in _OF_A_SHARE:
            return _OF_A_SHARE[field](self.share)
        if self.instance is not None and (field in INSTANCE_FIELDS or field == _XID_FIELD):
            return self.instance.fields.get(field)
        return self.sample.fields.get(field)


class _Rows(NamedTuple):
    """Entities with their labels; `keys` belong to `names`."""

    entities: Sequence[_Entity]
    base_names: tuple[str, ...]
    base: Sequence[Key]
    attributes: Sequence[dict[str, str]]
    names: tuple[str, ...]
    keys: Sequence[Key]


Made = Mapping[str, Mapping[tuple[str, str], Sequence[ComputedRow]]]
"""By field and card (node, uuid): rows that are computed from values of the card."""


def dcgm_families(
    samples: Sequence[DeviceSample],
    counters: Sequence[Counter],
    labels: DcgmLabels,
    made: Made = _NONE_MADE,
    names: SeriesNames = _NO_NAMES,
) -> list[Family]:
    """One family per counter, in the counters' order; series by (node, GPU, GPU instance).

    Fields of a MIG instance are printed for each instance, with `GPU_I_*`, and not for the card, so
    that memory counts once. Fields of the card are printed for the card, with `repeats_card` for
    each of its instances instead. A card that several HPC jobs have is printed for each of them.
    """
    rows = sorted({counter.name: counter.field for counter in counters if counter.is_label}.items())
    cards = _rows(
        _repeated([_Entity(sample) for sample in samples], labels, names), rows, labels, names
    )
    divided = any(sample.instances for sample in samples)
    parts = (
        _rows(_repeated(_parts(samples), labels, names), rows, labels, names) if divided else cards
    )
    struck = (
        _rows(_repeated(_parts(samples, _has_xid), labels, names), rows, labels, names)
        if divided
        else cards
    )
    families = []
    for counter in counters:
        if counter.is_label:
            continue
        if counter.field in made:
            families.append(_made(counter, cards, made[counter.field]))
            continue
        level = level_of(counter.field)
        is_of_parts = level == Level.INSTANCE or (labels.repeats_card and level == Level.GPU)
        of = struck if counter.field == _XID_FIELD else parts if is_of_parts else cards
        values = [entity.value(counter.field) for entity in of.entities]
        if counter.is_double:
            values = [None if value is None else float(value) for value in values]
        printed, keys = of.names, of.keys
        if level == Level.LINK:
            printed, keys = _of_link(of, counter.field)
        if counter.field == _XID_FIELD:
            worded = [
                {**given, **_xid_words(value)}
                for given, value in zip(of.attributes, values, strict=True)
            ]
            printed, keys = _joined(of.base_names, of.base, worded)
        families.append(Family(_metric(counter, printed), keys, values, omits_empty=True))
    return families


def _made(
    counter: Counter, cards: _Rows, made: Mapping[tuple[str, str], Sequence[ComputedRow]]
) -> Family:
    found = [
        (base, {**given, **row.labels}, row.value)
        for entity, base, given in zip(cards.entities, cards.base, cards.attributes, strict=True)
        for row in made.get((entity.sample.node, entity.sample.uuid), ())
    ]
    names = dict.fromkeys(name for _, given, _ in found for name in given)
    whole = [{**dict.fromkeys(names, ""), **given} for _, given, _ in found]
    labels, keys = _joined(cards.base_names, [base for base, _, _ in found], whole)
    return Family(
        _metric(counter, labels), keys, [value for _, _, value in found], omits_empty=True
    )


def _parts(
    samples: Sequence[DeviceSample],
    is_also_whole: Callable[[DeviceSample], bool] = lambda sample: False,
) -> list[_Entity]:
    """The instances of divided cards, and the cards that are not divided or `is_also_whole`."""
    found: list[_Entity] = []
    for sample in samples:
        parts = [_Entity(sample, each) for each in gpu_instances(sample)]
        found += [_Entity(sample), *parts] if not parts or is_also_whole(sample) else parts
    return found


def _has_xid(sample: DeviceSample) -> bool:
    """Whether the whole card had an XID, and not one of its instances."""
    return bool(sample.fields.get(_XID_FIELD))


def _repeated(entities: Sequence[_Entity], labels: DcgmLabels, names: SeriesNames) -> list[_Entity]:
    """Each entity once per HPC job, followed by the parts of the containers that share it."""
    found: list[_Entity] = []
    for each in entities:
        jobs = names.jobs.get(
            f"{each.sample.index}.{each.instance.gpu_instance}"
            if each.instance
            else str(each.sample.index)
        ) or ("",)
        found += [each._replace(job=job) for job in jobs]
        if labels.has_virtual_gpus and labels.has_pods:
            shares = [
                process
                for process in each.processes
                if process.pod and process.allocate_mode not in WHOLE_ENTITY
            ]
            found += [each._replace(share=share) for share in sorted(shares, key=_share_name)]
    return found


def _share_name(share: DeviceProcess) -> tuple[str, str, str]:
    return share.namespace, share.pod, share.container


def _rows(
    entities: Sequence[_Entity],
    rows: Sequence[tuple[str, str]],
    labels: DcgmLabels,
    names: SeriesNames,
) -> _Rows:
    attributes = [_attributes(entity, labels, names) for entity in entities]
    pods = [_pod_labels(entity, labels, names) for entity in entities]
    of_pods = set().union(*pods) - {name for name, _ in rows}
    last = sorted([*rows, *((name, "") for name in of_pods)])
    base_names = _base_names(tuple(name for name, _ in last), labels)
    base = [
        _base_key(entity, last, labels, given) for entity, given in zip(entities, pods, strict=True)
    ]
    printed, keys = _joined(base_names, base, attributes)
    return _Rows(entities, base_names, base, attributes, printed, keys)


def _pod_labels(entity: _Entity, labels: DcgmLabels, names: SeriesNames) -> Mapping[str, str]:
    holder = _holder(entity)
    found = (
        names.pods.get((holder.namespace, holder.pod)) if labels.has_pods and holder.pod else None
    )
    return found.labels if found else {}


def _holder(entity: _Entity) -> DeviceHolder:
    share = entity.share
    return (
        device_holder(entity.processes)
        if share is None
        else DeviceHolder(share.namespace, share.pod, share.container, share.pod_uid)
    )


def _metric(counter: Counter, labels: tuple[str, ...]) -> MetricName:
    return MetricName(counter.name, counter.type, labels, counter.help)


def _base_names(last: tuple[str, ...], labels: DcgmLabels) -> tuple[str, ...]:
    card, instance = (
        ("gpu", labels.uuid, "pci_bus_id", "device", "modelName"),
        ("GPU_I_PROFILE", "GPU_I_ID"),
    )
    return (*card, *instance, *labels.hostnames, *last)


def _base_key(
    entity: _Entity, last: Sequence[tuple[str, str]], labels: DcgmLabels, pod: Mapping[str, str]
) -> Key:
    """`last`: by name, label rows with their fields and labels of pods with ""."""
    sample, instance = entity.sample, entity.instance
    return (
        str(sample.index),
        sample.uuid,
        sample.pci_bus_id,
        f"nvidia{sample.index}",
        sample.model.replace(" ", "-") if labels.has_blanks_replaced else sample.model,
        instance.profile if instance else "",
        str(instance.gpu_instance) if instance else "",
        *(sample.node for _ in labels.hostnames),
        *(_label_value(sample, field) if field else pod.get(name, "") for name, field in last),
    )


def _label_value(sample: DeviceSample, field: str) -> str:
    if field in sample.texts:
        return sample.texts[field]
    if field in _LABEL_ROWS:
        return str(getattr(sample, _LABEL_ROWS[field]))
    value = sample.fields.get(field)
    return "" if value is None else str(value)


def _of_link(rows: _Rows, field: str) -> tuple[tuple[str, ...], list[Key]]:
    """Replace the labels of a card by those of one of its links; the labels that follow stay."""
    match = _OF_A_LINK.match(field)
    link, card = match[1] if match else "", len(_CARD_OF_LINK)
    return ("nvlink", *_CARD_OF_LINK, *rows.names[card:]), [(link, *key) for key in rows.keys]


def _attributes(entity: _Entity, labels: DcgmLabels, names: SeriesNames) -> dict[str, str]:
    """Attribute labels of one card or instance.

    Names without a value have "", so that all entities have the same names.
    """
    container, namespace, pod = labels.pod
    found = {"hpc_job": entity.job} if names.jobs else {}
    if not labels.has_pods:
        return found
    holder = _holder(entity)
    found |= {container: holder.container, namespace: holder.namespace, pod: holder.pod}
    if labels.has_pod_uids:
        known = names.pods.get((holder.namespace, holder.pod))
        found["pod_uid"] = known.uid if known and holder.pod else holder.pod_uid
    if labels.has_claims:
        found |= {name: holder.claim.get(name, "") for name in CLAIM_LABELS}
    if labels.has_virtual_gpus:
        found["vgpu"] = entity.share.replica if entity.share else ""
    return found


def _xid_words(value: float | None) -> dict[str, str]:
    code = int(value or 0)
    return {"err_code": str(code), "err_msg": xid_text(code)}


def _joined(
    base_names: tuple[str, ...], base: Sequence[Key], attributes: Sequence[dict[str, str]]
) -> tuple[tuple[str, ...], list[Key]]:
    """Base labels, then the attributes sorted by name."""
    extra = tuple(sorted(attributes[0])) if attributes else ()
    return (*base_names, *extra), [
        (*key, *(given[name] for name in extra))
        for key, given in zip(base, attributes, strict=True)
    ]
