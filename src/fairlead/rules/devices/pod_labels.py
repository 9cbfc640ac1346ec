"""Which labels of a pod are printed on the series of its cards, by what names (telemetry contract 1.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

_WORDS: Final = """\
gpu uuid UUID pci_bus_id device modelName GPU_I_PROFILE GPU_I_ID Hostname hostname
nvlink nvswitch gpu_uuid model_name peer_gpu link_status
container namespace pod container_name pod_namespace pod_name pod_uid vgpu hpc_job
err_code err_msg xid window_size_in_ms clock_event health_watch health_error_code
dra_claim_name dra_claim_namespace dra_driver_name dra_pool_name dra_device_name dra_mig_profile dra_mig_device_uuid
"""
_TAKEN: Final = frozenset(_WORDS.split())
"""Labels of DCGM's series: a pod that bears such a name does not say which card or pod a series is of."""
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_]")


def printed_labels(labels: Mapping[str, str], allowed: Sequence[re.Pattern[str]]) -> dict[str, str]:
    """Those whose name one of `allowed` is found in (none = all), by names of letters, digits and `_`.

    Of two that have the same name then, the first by its own name counts.

    >>> printed_labels({"app.kubernetes.io/name": "a", "team": "b", "pod": "c"}, [re.compile("name|pod")])
    {'app_kubernetes_io_name': 'a'}
    """
    found: dict[str, str] = {}
    for name, value in sorted(labels.items()):
        if allowed and not any(pattern.search(name) for pattern in allowed):
            continue
        printed = _FOREIGN.sub("_", name)
        printed = f"_{printed}" if printed[:1].isdigit() else printed
        if printed not in _TAKEN and not printed.startswith("__"):
            found.setdefault(printed, value)
    return found
