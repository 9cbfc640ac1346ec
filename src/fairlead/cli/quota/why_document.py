"""The document of `quota why -o json`.

All keys are always present; amounts are canonical quantities, times RFC 3339 or null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.model.resources import amount_text
from fairlead.wire.kube.time import render_time
from fairlead.wire.quota.plan_json import render_waiting

if TYPE_CHECKING:
    from fairlead.model.moment import Moment
    from fairlead.model.quota.plan import QuotaWaiting
    from fairlead.rules.quota.why import QueuedUnit, QueuePlace, QuotaAnswer

Object = dict[str, Any]


def answer_document(answer: QuotaAnswer) -> Object:
    """`evictions.count` is null where Events could not be read,
    and counts what Events are kept of.
    """
    evicted = answer.evicted
    return {
        "kind": answer.kind,
        "name": answer.key,
        "reason": answer.reason,
        "reasonSince": _time(answer.reason_since),
        "message": answer.sentence,
        "leaf": answer.leaf,
        "pods": answer.pods,
        "admitted": answer.admitted,
        "priority": answer.priority,
        "waitsSince": _time(answer.since),
        "evictions": {
            "count": evicted.count if evicted else None,
            "last": _time(evicted.at) if evicted else None,
        },
        "isReported": answer.is_reported,
        "units": [_unit(unit) for unit in answer.units],
        "usage": [_usage(answer, resource) for resource in answer.resources],
    }


def _unit(unit: QueuedUnit) -> Object:
    """A unit of the plan, and where it stands.

    `lacks.at` is "" for the cluster's nodes together.
    """
    row = unit.row
    return {
        **render_waiting(row),
        "priority": row.priority,
        "waitsSince": _time(row.since),
        "reasonSince": _time(row.reason_since),
        "place": {"inLeaf": _place(unit.in_leaf), "overAllLeaves": _place(unit.overall)},
        "ahead": [_before(each) for each in unit.ahead],
        "aheadInLeaf": unit.in_leaf.number - 1,
        "aheadInOtherLeaves": dict(sorted(unit.ahead_elsewhere.items())),
        "lacks": [
            {
                "of": each.kind,
                "at": each.at,
                "resource": each.resource,
                "amount": amount_text(each.resource, each.amount),
            }
            for each in unit.lacks
        ],
    }


def _before(row: QuotaWaiting) -> Object:
    return {
        "unit": row.unit,
        "priority": row.priority,
        "reason": str(row.reason),
        "waitsSince": _time(row.since),
    }


def _place(place: QueuePlace) -> Object:
    return {"place": place.number, "of": place.count}


def _usage(answer: QuotaAnswer, resource: str) -> Object:
    """What the leaf has of it; `min` is what counts now, `max` null = unlimited."""
    node, use = answer.node, answer.use
    assert node is not None
    assert use is not None
    used, written, most = (
        use.used.get(resource, 0),
        node.min.get(resource, 0),
        node.max.get(resource),
    )
    least = use.counted_min.get(resource, written)
    return {
        "resource": resource,
        "used": amount_text(resource, used),
        "claimed": amount_text(resource, use.claimed.get(resource, 0)),
        "min": amount_text(resource, least),
        "minWritten": amount_text(resource, written),
        "borrowed": amount_text(resource, max(0, used - least)),
        "max": None if most is None else amount_text(resource, most),
    }


def _time(at: Moment | None) -> str | None:
    return None if at is None else render_time(at)
