"""The cluster's admission policies about shared GPUs, as functions: which account may write grants
on a pod, which scheduler a pod goes to, and which new pod no node can ever run.

The API server fills in `default-scheduler` before any policy reads the pod, so it is unknown
whether the pod's author wrote it. A pod that asks for shared GPU memory goes to Fairlead's
scheduler in both cases: the default one would only compare sums.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from fairlead.model.installation import OwnAccounts
from fairlead.model.keys import GRANT_ANNOTATIONS
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.rules.holding.need import gpu_need

SCHEDULER: Final = "fairlead-scheduler"
DEFAULT_SCHEDULER: Final = "default-scheduler"
GRANT_WRITERS: Final = frozenset(OwnAccounts().grant_writers)
"""Accounts that may write grants, of an installation in the namespaces that are the default."""
GRANT_POLICY: Final = "fairlead-gpu-grants"
"""Name of the ValidatingAdmissionPolicy and of its binding."""
ASK_POLICY: Final = "fairlead-gpu-asks"
"""Name of the ValidatingAdmissionPolicy about what a new pod asks for, and of its binding."""
_OWN_SCHEDULERS: Final = frozenset(("", DEFAULT_SCHEDULER, SCHEDULER))


def scheduler_for(pod: Pod) -> str:
    """The scheduler that the pod should name."""
    is_unnamed = pod.scheduler in ("", DEFAULT_SCHEDULER)
    return SCHEDULER if is_unnamed and not gpu_need(pod).is_nothing else pod.scheduler


def refuse_asking(pod: Pod) -> Refusal | None:
    """The refusal of a new pod whose request for shared GPUs no node can meet.

    The fault is `gpu_need(pod).fault`.

    None for all others, and for pods with a foreign scheduler: how that scheduler reads them is not
    known.

    >>> from fairlead.model.pod import Container
    >>> limits = {"aliyun.com/gpu-mem": 4, "aliyun.com/gpu-core.percentage": 7}
    >>> refuse_asking(Pod("ns", "p", containers=(Container("c", limits=limits),))).reason
    'no node can run this pod: gpu-core 7 is not a multiple of 5 from 5 to 100'
    """
    fault = gpu_need(pod).fault if pod.scheduler in _OWN_SCHEDULERS else ""
    return Refusal(f"no node can run this pod: {fault}") if fault else None


def refuse_grants(
    before: Mapping[str, str],
    after: Mapping[str, str],
    user: str,
    writers: Collection[str] = GRANT_WRITERS,
) -> Refusal | None:
    """The refusal if `user` may not turn a pod's annotations `before` into `after`.

    None if they may. `writers`: the accounts that may write grants.

    >>> refuse_grants({}, {"ALIYUN_COM_GPU_MEM_IDX": "0", "team": "a"}, "alice").reason
    'only Fairlead writes the annotation ALIYUN_COM_GPU_MEM_IDX'
    >>> held = {"ALIYUN_COM_GPU_MEM_IDX": "0"}
    >>> refuse_grants(held, {**held, "team": "a"}, "alice")
    """
    if user in writers:
        return None
    for key in GRANT_ANNOTATIONS:
        if before.get(key, "") != after.get(key, ""):
            return Refusal(f"only Fairlead writes the annotation {key}")
    return None
