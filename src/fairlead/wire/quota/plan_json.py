"""A quota plan as JSON: every key is always present, amounts are canonical quantities.

See docs/spec/quota.md#plan-as-json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.model.quota.plan import (
    FullQuotaNode,
    QuotaAdmission,
    QuotaClaim,
    QuotaEviction,
    QuotaNodeUse,
    QuotaPlan,
    QuotaResume,
    QuotaReturn,
    QuotaWaiting,
)
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import Violation
from fairlead.model.resources import amount_text
from fairlead.wire.kube.quantity import render_amounts

Object = dict[str, Any]


def render_plan(plan: QuotaPlan) -> Object:
    return {
        "admit": [_admission(each) for each in plan.admit],
        "evict": [_eviction(each) for each in plan.evict],
        "disrupted": plan.disrupted,
        "claims": [_claim(each) for each in plan.claims],
        "return": [_return(each) for each in plan.returned],
        "resume": [_resume(each) for each in plan.resume],
        "waiting": [render_waiting(each) for each in plan.waiting],
        "nodes": [render_node_use(each) for each in plan.nodes],
        "violations": render_violations(plan.violations),
    }


def render_settled(
    plan: QuotaPlan,
    running: Mapping[str, int],
    plans: int,
    admitted: Iterable[QuotaAdmission],
    evicted: Iterable[QuotaEviction],
) -> Object:
    """The result of repeated planning: `plan` is the last plan, which changes nothing; the counts
    and lists cover all `plans`.
    """
    done = [_eviction(each) for each in evicted]
    return {
        "plans": plans,
        "evictions": len(done),
        "running": dict(running),
        "admit": [_admission(each) for each in admitted],
        "evict": done,
        "waiting": [render_waiting(each) for each in plan.waiting],
        "violations": render_violations(plan.violations),
    }


def _eviction(eviction: QuotaEviction) -> Object:
    return {
        **_pod(eviction.pod, eviction.leaf),
        "for": eviction.for_unit,
        "how": str(eviction.method),
        "frees": render_amounts(eviction.frees),
    }


def render_waiting(waiting: QuotaWaiting) -> Object:
    return {
        "unit": waiting.unit,
        "pods": waiting.pod_count,
        "leaf": waiting.leaf,
        "reason": str(waiting.reason),
        "position": waiting.position,
        "message": waiting.message,
        "clauses": [{"code": each.code, "values": dict(each.values)} for each in waiting.clauses],
        "blocked": [_blocked(each) for each in waiting.blocked],
        "borrowers": [
            {
                "leaf": each.leaf,
                "resource": each.resource,
                "over": amount_text(each.resource, each.over),
            }
            for each in waiting.borrowers
        ],
        "spared": [{"pod": each.pod, "why": each.why} for each in waiting.spared],
    }


def render_violations(violations: Iterable[Violation]) -> list[Object]:
    return [
        {
            "path": each.path,
            "code": each.code,
            "message": each.message,
            "level": "error" if each.is_error else "warning",
        }
        for each in violations
    ]


def _pod(pod: QuotaPod, leaf: str) -> Object:
    return {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid, "leaf": leaf}


def _admission(admission: QuotaAdmission) -> Object:
    return {**_pod(admission.pod, admission.leaf), "guaranteed": admission.is_guaranteed}


def _claim(claim: QuotaClaim) -> Object:
    return {"unit": claim.unit, "leaf": claim.leaf, "request": render_amounts(claim.request)}


def _return(returned: QuotaReturn) -> Object:
    """`how`: a bare pod would not come back, so its owner gets an Event only."""
    return {
        **_pod(returned.pod, returned.leaf),
        "how": "tell" if returned.is_event_only else "delete",
    }


def _resume(resume: QuotaResume) -> Object:
    """`pods`: number of further pods of a batch Job that may
    run; 0 = the job goes on as a whole.
    """
    job = resume.workload
    return {
        "namespace": job.namespace,
        "kind": job.kind,
        "name": job.name,
        "uid": job.uid,
        "leaf": resume.leaf,
        "pods": resume.pods,
    }


def _blocked(blocked: FullQuotaNode) -> Object:
    numbers = {
        "asks": blocked.asks,
        "used": blocked.used,
        "claimed": blocked.claimed,
        "max": blocked.max,
    }
    amounts = {name: amount_text(blocked.resource, amount) for name, amount in numbers.items()}
    return {"node": blocked.node, "resource": blocked.resource, **amounts}


def render_node_use(use: QuotaNodeUse) -> Object:
    return {
        "name": use.name,
        "namespaces": list(use.namespaces),
        "children": list(use.children),
        "waiting": {"units": use.waiting_units, "pods": use.waiting_pods},
        "used": render_amounts(use.used),
        "request": render_amounts(use.request),
        "guaranteed": render_amounts(use.guaranteed),
        "borrowed": render_amounts(use.borrowed),
        "claimed": render_amounts(use.claimed),
        "lost": render_amounts(use.lost),
        **({"countedMin": render_amounts(use.counted_min)} if use.counted_min else {}),
        **({"overMax": render_amounts(use.over_max)} if use.over_max else {}),
        "nonPreemptibleUsed": render_amounts(use.firm_used),
        "nonPreemptibleRequest": render_amounts(use.firm_request),
    }
