"""A pod as quota sees it, until `rules/quota/sight` is there."""

from __future__ import annotations

from fairlead.model.keys import LABEL_POD_GROUP, LABEL_POD_GROUP_SIZE, LABELS_PREEMPTIBLE, QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.pod import Pod
from fairlead.model.quota.plan import Reason
from fairlead.model.quota.state import QuotaPod


def quota_pod(pod: Pod) -> QuotaPod | None:
    """None: it is not counted."""
    if pod.is_finished:
        return None
    said = next((each for each in pod.conditions if each.type == QUOTA_CONDITION), None)
    label = next((pod.labels[key] for key in LABELS_PREEMPTIBLE if key in pod.labels), "")
    claims = said is not None and said.reason == Reason.WAITING_FOR_EVICTIONS
    return QuotaPod(
        pod.namespace,
        pod.name,
        pod.uid,
        request=pod.requests,
        priority=pod.priority,
        is_admitted=QUOTA_GATE not in pod.gates,
        is_stopping=pod.deleted_at is not None,
        is_ready=any(each.type == "Ready" and each.status == "True" for each in pod.conditions),
        is_preemptible=label == "true" if label else bool(pod.owners),
        created_at=pod.created_at or 0.0,
        admitted_at=pod.created_at or 0.0,
        claim_since=said.at if said is not None and claims else None,
        owner=pod.controller.uid if pod.controller else "",
        gang=pod.labels.get(LABEL_POD_GROUP, ""),
        gang_size=int(pod.labels.get(LABEL_POD_GROUP_SIZE, "0")),
        stopping_at=pod.deleted_at,
        node=pod.node,
        said_reason=said.reason if said else "",
        said=said.message if said else "",
        said_at=said.at if said else None,
    )
