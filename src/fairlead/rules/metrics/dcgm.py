"""dcgm-exporter's page from device samples: its names, labels, order and units (telemetry contract 1.4).

A label without a value is left out here (the families omit empty labels), and a value that a device does not
have prints nothing, so a family may be missing altogether.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.devices.counter import Counter
from fairlead.model.devices.device import DeviceSample
from fairlead.model.devices.xid import xid_text
from fairlead.model.metric import Family, Key, MetricName
from fairlead.rules.devices.attribution import device_holder

_XID_FIELD: Final = "DCGM_FI_DEV_XID_ERRORS"
_LABEL_ROWS: Final = {
    "DCGM_FI_DRIVER_VERSION": "driver_version",
    "DCGM_FI_DEV_SERIAL": "serial",
    "DCGM_FI_DEV_VBIOS_VERSION": "vbios_version",
}


class DcgmLabels(Struct, frozen=True, gc=False):
    """How labels are spelt.

    `hostnames`: the label names that carry the host, none for --no-hostname. `has_old_names`: -o. `has_pods`:
    pods are named at all (--kubernetes); `has_pod_uids`: with their UIDs.
    """

    hostnames: tuple[str, ...] = ("Hostname",)
    has_old_names: bool = False
    has_blanks_replaced: bool = False
    has_pods: bool = True
    has_pod_uids: bool = False

    @property
    def uuid(self) -> str:
        return "uuid" if self.has_old_names else "UUID"

    @property
    def pod(self) -> tuple[str, str, str]:
        """Names of the container, namespace and pod labels."""
        return ("container_name", "pod_namespace", "pod_name") if self.has_old_names else ("container", "namespace", "pod")


def dcgm_families(samples: Sequence[DeviceSample], counters: Sequence[Counter], labels: DcgmLabels) -> list[Family]:
    """One family per counter, in the counters' order; series by (node, GPU)."""
    rows = sorted({counter.name: counter.field for counter in counters if counter.is_label}.items())
    base_names, base = _base_labels(samples, rows, labels)
    attributes = [_attributes(sample, labels) for sample in samples]
    names, keys = _joined(base_names, base, attributes)
    families = []
    for counter in counters:
        if counter.is_label:
            continue
        values = [sample.fields.get(counter.field) for sample in samples]
        if counter.is_double:
            values = [None if value is None else float(value) for value in values]
        if counter.field == _XID_FIELD:
            worded = [{**given, **_xid_words(value)} for given, value in zip(attributes, values, strict=True)]
            xid_names, xid_keys = _joined(base_names, base, worded)
            families.append(Family(_metric(counter, xid_names), xid_keys, values, omits_empty=True))
        else:
            families.append(Family(_metric(counter, names), keys, values, omits_empty=True))
    return families


def _metric(counter: Counter, labels: tuple[str, ...]) -> MetricName:
    return MetricName(counter.name, counter.type, labels, counter.help)


def _base_labels(samples: Sequence[DeviceSample], rows: Sequence[tuple[str, str]], labels: DcgmLabels) -> tuple[tuple[str, ...], list[Key]]:
    names = ("gpu", labels.uuid, "pci_bus_id", "device", "modelName", *labels.hostnames, *(name for name, _ in rows))
    keys = [
        (
            str(sample.index),
            sample.uuid,
            sample.pci_bus_id,
            f"nvidia{sample.index}",
            sample.model.replace(" ", "-") if labels.has_blanks_replaced else sample.model,
            *(sample.node for _ in labels.hostnames),
            *(_label_value(sample, field) for _, field in rows),
        )
        for sample in samples
    ]
    return names, keys


def _label_value(sample: DeviceSample, field: str) -> str:
    if field in sample.texts:
        return sample.texts[field]
    if field in _LABEL_ROWS:
        return str(getattr(sample, _LABEL_ROWS[field]))
    value = sample.fields.get(field)
    return "" if value is None else str(value)


def _attributes(sample: DeviceSample, labels: DcgmLabels) -> dict[str, str]:
    """Attribute labels of one device.

    Names without a value are there with "", so that all samples have the same ones.
    """
    container, namespace, pod = labels.pod
    if not labels.has_pods:
        return {}
    holder = device_holder(sample.processes)
    uid = {"pod_uid": holder.pod_uid} if labels.has_pod_uids else {}
    return {container: holder.container, namespace: holder.namespace, pod: holder.pod, **uid}


def _xid_words(value: float | None) -> dict[str, str]:
    code = int(value or 0)
    return {"err_code": str(code), "err_msg": xid_text(code)}


def _joined(base_names: tuple[str, ...], base: Sequence[Key], attributes: Sequence[dict[str, str]]) -> tuple[tuple[str, ...], list[Key]]:
    """Base labels, then the attributes sorted by name."""
    extra = tuple(sorted(attributes[0])) if attributes else ()
    return (*base_names, *extra), [(*key, *(given[name] for name in extra)) for key, given in zip(base, attributes, strict=True)]
