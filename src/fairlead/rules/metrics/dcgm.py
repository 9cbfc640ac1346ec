"""dcgm-exporter's page from device samples: its names, labels, order and units (telemetry contract 1.4).

A label without a value is left out here (the families omit empty labels), and a value that a device does not
have prints nothing, so a family may be missing altogether.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from fairlead.model.devices.counter import Counter
from fairlead.model.devices.device import DeviceSample, MigInstance
from fairlead.model.devices.xid import xid_text
from fairlead.model.metric import Family, Key, MetricName
from fairlead.rules.devices.attribution import device_holder
from fairlead.rules.devices.mig import gpu_instances
from fairlead.rules.metrics.dcgm_made import MadeRow

_NONE_MADE: Final[Mapping[str, Mapping[tuple[str, str], Sequence[MadeRow]]]] = {}
_XID_FIELD: Final = "DCGM_FI_DEV_XID_ERRORS"
INSTANCE_FIELDS: Final = frozenset(
    [
        *(f"DCGM_FI_DEV_{name}" for name in ("FB_TOTAL", "FB_FREE", "FB_USED", "FB_RESERVED", "FB_USED_PERCENT")),
        *(f"DCGM_FI_DEV_BAR1_{name}" for name in ("TOTAL", "USED", "FREE")),
        *(f"DCGM_FI_PROF_{name}_ACTIVE" for name in ("GR_ENGINE", "SM", "PIPE_TENSOR", "DRAM", "PIPE_FP64", "PIPE_FP32", "PIPE_FP16")),
        *(f"DCGM_FI_PROF_PIPE_{name}_ACTIVE" for name in ("TENSOR_IMMA", "TENSOR_HMMA", "TENSOR_DFMA", "INT")),
        "DCGM_FI_PROF_SM_OCCUPANCY",
    ]
)
"""What each MIG instance has for itself (telemetry contract 1.8)."""
_LABEL_ROWS: Final = {
    "DCGM_FI_DRIVER_VERSION": "driver_version",
    "DCGM_FI_DEV_SERIAL": "serial",
    "DCGM_FI_DEV_VBIOS_VERSION": "vbios_version",
}


class DcgmLabels(Struct, frozen=True, gc=False):
    """How labels are spelt.

    `hostnames`: the label names that carry the host, none for --no-hostname. `has_old_names`: -o. `has_pods`:
    pods are named at all (--kubernetes); `has_pod_uids`: with their UIDs. `repeats_card`: a divided card's
    own fields are printed for each of its MIG instances.
    """

    hostnames: tuple[str, ...] = ("Hostname",)
    has_old_names: bool = False
    has_blanks_replaced: bool = False
    has_pods: bool = True
    has_pod_uids: bool = False
    repeats_card: bool = False

    @property
    def uuid(self) -> str:
        return "uuid" if self.has_old_names else "UUID"

    @property
    def pod(self) -> tuple[str, str, str]:
        """Names of the container, namespace and pod labels."""
        return ("container_name", "pod_namespace", "pod_name") if self.has_old_names else ("container", "namespace", "pod")


class _Entity(NamedTuple):
    """What one series is of: a card, or one MIG instance of it."""

    sample: DeviceSample
    instance: MigInstance | None = None

    def value(self, field: str) -> float | int | None:
        if self.instance is not None and field in INSTANCE_FIELDS:
            return self.instance.fields.get(field)
        return self.sample.fields.get(field)


class _Rows(NamedTuple):
    """Entities with their labels; `keys` belong to `names`."""

    entities: Sequence[_Entity]
    base: Sequence[Key]
    attributes: Sequence[dict[str, str]]
    names: tuple[str, ...]
    keys: Sequence[Key]


Made = Mapping[str, Mapping[tuple[str, str], Sequence[MadeRow]]]
"""By field and card (node, uuid): rows of what is no value of the card but made of it."""


def dcgm_families(
    samples: Sequence[DeviceSample], counters: Sequence[Counter], labels: DcgmLabels, made: Made = _NONE_MADE
) -> list[Family]:
    """One family per counter, in the counters' order; series by (node, GPU, GPU instance).

    Fields of a MIG instance are printed for each, with `GPU_I_*`, and not for the card: memory counts once.
    Fields of the card are printed for the card; `repeats_card`: for each of its instances in its place.
    """
    rows = sorted({counter.name: counter.field for counter in counters if counter.is_label}.items())
    cards = _rows([_Entity(sample) for sample in samples], rows, labels)
    divided = any(sample.instances for sample in samples)
    parts = _rows(_parts(samples), rows, labels) if divided else cards
    families = []
    for counter in counters:
        if counter.is_label:
            continue
        if counter.field in made:
            families.append(_made(counter, cards, made[counter.field], _base_names(rows, labels)))
            continue
        of = parts if counter.field in INSTANCE_FIELDS or labels.repeats_card else cards
        values = [entity.value(counter.field) for entity in of.entities]
        if counter.is_double:
            values = [None if value is None else float(value) for value in values]
        names, keys = of.names, of.keys
        if counter.field == _XID_FIELD:
            worded = [{**given, **_xid_words(value)} for given, value in zip(of.attributes, values, strict=True)]
            names, keys = _joined(_base_names(rows, labels), of.base, worded)
        families.append(Family(_metric(counter, names), keys, values, omits_empty=True))
    return families


def _made(counter: Counter, cards: _Rows, made: Mapping[tuple[str, str], Sequence[MadeRow]], base_names: tuple[str, ...]) -> Family:
    found = [
        (base, {**given, **row.labels}, row.value)
        for entity, base, given in zip(cards.entities, cards.base, cards.attributes, strict=True)
        for row in made.get((entity.sample.node, entity.sample.uuid), ())
    ]
    names = dict.fromkeys(name for _, given, _ in found for name in given)
    whole = [{**dict.fromkeys(names, ""), **given} for _, given, _ in found]
    labels, keys = _joined(base_names, [base for base, _, _ in found], whole)
    return Family(_metric(counter, labels), keys, [value for _, _, value in found], omits_empty=True)


def _parts(samples: Sequence[DeviceSample]) -> list[_Entity]:
    """The instances of divided cards, and the cards that are not."""
    found: list[_Entity] = []
    for sample in samples:
        found += [_Entity(sample, each) for each in gpu_instances(sample)] or [_Entity(sample)]
    return found


def _rows(entities: Sequence[_Entity], rows: Sequence[tuple[str, str]], labels: DcgmLabels) -> _Rows:
    base = [_base_key(entity, rows, labels) for entity in entities]
    attributes = [_attributes(entity, labels) for entity in entities]
    names, keys = _joined(_base_names(rows, labels), base, attributes)
    return _Rows(entities, base, attributes, names, keys)


def _metric(counter: Counter, labels: tuple[str, ...]) -> MetricName:
    return MetricName(counter.name, counter.type, labels, counter.help)


def _base_names(rows: Sequence[tuple[str, str]], labels: DcgmLabels) -> tuple[str, ...]:
    instance = ("GPU_I_PROFILE", "GPU_I_ID")
    return ("gpu", labels.uuid, "pci_bus_id", "device", "modelName", *instance, *labels.hostnames, *(name for name, _ in rows))


def _base_key(entity: _Entity, rows: Sequence[tuple[str, str]], labels: DcgmLabels) -> Key:
    sample, instance = entity
    return (
        str(sample.index),
        sample.uuid,
        sample.pci_bus_id,
        f"nvidia{sample.index}",
        sample.model.replace(" ", "-") if labels.has_blanks_replaced else sample.model,
        instance.profile if instance else "",
        str(instance.gpu_instance) if instance else "",
        *(sample.node for _ in labels.hostnames),
        *(_label_value(sample, field) for _, field in rows),
    )


def _label_value(sample: DeviceSample, field: str) -> str:
    if field in sample.texts:
        return sample.texts[field]
    if field in _LABEL_ROWS:
        return str(getattr(sample, _LABEL_ROWS[field]))
    value = sample.fields.get(field)
    return "" if value is None else str(value)


def _attributes(entity: _Entity, labels: DcgmLabels) -> dict[str, str]:
    """Attribute labels of one card or instance.

    Names without a value are there with "", so that all have the same ones.
    """
    container, namespace, pod = labels.pod
    if not labels.has_pods:
        return {}
    holder = device_holder(entity.instance.processes if entity.instance else entity.sample.processes)
    uid = {"pod_uid": holder.pod_uid} if labels.has_pod_uids else {}
    return {container: holder.container, namespace: holder.namespace, pod: holder.pod, **uid}


def _xid_words(value: float | None) -> dict[str, str]:
    code = int(value or 0)
    return {"err_code": str(code), "err_msg": xid_text(code)}


def _joined(base_names: tuple[str, ...], base: Sequence[Key], attributes: Sequence[dict[str, str]]) -> tuple[tuple[str, ...], list[Key]]:
    """Base labels, then the attributes sorted by name."""
    extra = tuple(sorted(attributes[0])) if attributes else ()
    return (*base_names, *extra), [(*key, *(given[name] for name in extra)) for key, given in zip(base, attributes, strict=True)]
