"""Which labels of a pod are printed on the series of its cards, and under which names.

Specification: docs/spec/telemetry.md#format-and-labels-of-dcgm-series.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

_WORDS: Final = """\
gpu uuid UUID pci_bus_id device modelName GPU_I_PROFILE GPU_I_ID Hostname hostname
nvlink nvswitch gpu_uuid model_name peer_gpu link_status
container namespace pod container_name pod_namespace pod_name pod_uid vgpu hpc_job
err_code err_msg xid window_size_in_ms clock_event health_watch health_error_code
dra_claim_name dra_claim_namespace dra_driver_name dra_pool_name
dra_device_name dra_mig_profile dra_mig_device_uuid
"""
_TAKEN: Final = frozenset(_WORDS.split())
"""Labels of DCGM's series: a pod's label of the same name would hide the card or pod of a series.
"""
_OWNED: Final = frozenset({"job", "instance", "endpoint", "service"})
"""Labels of a scrape target.

With `honorLabels` a pod's label of the same name would replace the target's.
"""
_MOVED: Final = "exported_"
"""The prefix that Prometheus adds without `honorLabels`.

It renames `pod` to `exported_pod`, which such a label would replace.
"""
_WELL_KNOWN: Final = re.compile(r"(^|\.)(kubernetes|k8s)\.io/")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_]")


OWNED: Final = "owned"
"""Omitted because the exporter, Prometheus or a scrape target owns the name."""
COLLISION: Final = "collision"
"""Omitted because another key of the pod has the same printed name."""


class PrintedLabels(Struct, frozen=True):
    """Labels of a pod.

    `labels`: by names that Prometheus accepts. `left_out`: other keys of the pod, with the reason.
    """

    labels: Mapping[str, str] = {}
    left_out: Mapping[str, str] = {}


def printed_labels(labels: Mapping[str, str], allowed: Sequence[re.Pattern[str]]) -> PrintedLabels:
    """Labels whose key matches one of `allowed` (none = all), by names of letters, digits and `_`.

    Labels that the exporter, Prometheus or a scrape target owns are omitted. If several keys have
    the same name, a key of Kubernetes' own domains wins, then a key with a domain, then the first
    in order.

    >>> labels = {"app.kubernetes.io/name": "a", "exported_pod": "c"}
    >>> found = printed_labels(labels, [re.compile("name|pod")])
    >>> found.labels, found.left_out
    ({'app_kubernetes_io_name': 'a'}, {'exported_pod': 'owned'})
    """
    found: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name, value in sorted(labels.items(), key=_rank):
        if allowed and not any(pattern.search(name) for pattern in allowed):
            continue
        printed = _FOREIGN.sub("_", name)
        printed = f"_{printed}" if printed[:1].isdigit() else printed
        if _is_owned(printed):
            left_out[name] = OWNED
        elif printed in found:
            left_out[name] = COLLISION
        else:
            found[printed] = value
    return PrintedLabels(found, left_out)


def _is_owned(printed: str) -> bool:
    return printed in _TAKEN or printed in _OWNED or printed.startswith(("__", _MOVED))


def _rank(label: tuple[str, str]) -> tuple[bool, bool, str]:
    key = label[0]
    return (not _WELL_KNOWN.search(key), "/" not in key, key)
