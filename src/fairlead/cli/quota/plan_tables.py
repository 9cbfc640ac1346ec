"""Quota plans as tables: what is done, who waits, and each reason once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.model.resources import amount_text
from fairlead.wire.text.tabwriter import render_rows

if TYPE_CHECKING:
    from fairlead.model.quota.plan import QuotaAdmission, QuotaEviction, QuotaPlan, QuotaWaiting
    from fairlead.model.quota.tree import Violation
    from fairlead.model.resources import Amounts
    from fairlead.rules.quota.what_if import Settled


def plan_text(plan: QuotaPlan, violations: Sequence[Violation]) -> str:
    resumed = [
        ("RESUME", "LEAF"),
        *((f"{each.workload.kind.lower()} {each.workload.key}", each.leaf) for each in plan.resume),
    ]
    returned = [("NEVER BOUND", "LEAF"), *((each.pod.key, each.leaf) for each in plan.returned)]
    parts = [
        _violations(violations),
        _headline(plan, violations),
        _admissions(plan.admit),
        _evictions(plan.evict),
    ]
    parts += [render_rows(rows) for rows in (resumed, returned) if len(rows) > 1]
    return _paragraphs([*parts, *_waiting(plan.waiting)])


def settled_text(
    settled: Settled,
    before: Mapping[str, int],
    after: Mapping[str, int],
    violations: Sequence[Violation],
) -> str:
    """`before` and `after`: running pods by leaf."""
    evicted = len(settled.evicted)
    outcome = (
        f"Settled after {_count(settled.plans, 'plan')} with {_count(evicted, 'eviction')}. "
        "Nothing was written."
    )
    waiting = Counter[str]()
    for each in settled.plan.waiting:
        waiting[each.leaf] += each.pod_count
    rows = [("LEAF", "NAMESPACES", "RUN NOW", "RUN THEN", "WAIT THEN")]
    for leaf in settled.state.tree.leaves():
        now, then = str(before.get(leaf.name, 0)), str(after.get(leaf.name, 0))
        rows.append(
            (leaf.name, ",".join(leaf.namespaces) or "-", now, then, str(waiting[leaf.name]))
        )
    parts = [
        _violations(violations),
        f"{outcome}\n",
        render_rows(rows),
        _evictions(settled.evicted),
    ]
    return _paragraphs([*parts, *_waiting(settled.plan.waiting)])


def _violations(violations: Sequence[Violation]) -> str:
    if not violations:
        return ""
    rows = [("FAULT OF THE TREE", "WHAT")]
    rows += [
        (each.code if each.is_error else f"{each.code} (warning)", each.message)
        for each in violations
    ]
    return render_rows(rows)


def _headline(plan: QuotaPlan, violations: Sequence[Violation]) -> str:
    if any(each.stops for each in violations):
        return "The quota tree is invalid: no pods are admitted or evicted.\n"
    suspended = {
        each.workload.uid
        for each in plan.evict
        if each.workload is not None and str(each.method) == "suspend"
    }
    done = [
        (len(plan.admit), "admit {}", "pod"),
        (len(plan.evict), "evict {}", "pod"),
        (len(suspended), "suspend {}", "job"),
    ]
    done += [(len(plan.resume), "resume {}", "job"), (len(plan.returned), "return {}", "pod")]
    actions = ", ".join(verb.format(_count(number, what)) for number, verb, what in done if number)
    waiting = _count(len(plan.waiting), "unit") + (" waits" if len(plan.waiting) == 1 else " wait")
    return (
        f"The controller would {actions or 'do nothing'}; "
        f"{waiting if plan.waiting else 'nothing waits'}. Nothing was written.\n"
    )


def _admissions(admitted: Sequence[QuotaAdmission]) -> str:
    if not admitted:
        return ""
    rows = [("ADMIT", "LEAF", "GUARANTEED")]
    rows += [
        (each.pod.key, each.leaf, "yes" if each.is_guaranteed else "no, it borrows")
        for each in admitted
    ]
    return render_rows(rows)


def _evictions(evicted: Sequence[QuotaEviction]) -> str:
    if not evicted:
        return ""
    rows = [("EVICT", "LEAF", "HOW", "FREES", "FOR")]
    for each in evicted:
        how = (
            f"{each.method} {each.workload.kind.lower()} {each.workload.name}"
            if each.workload is not None
            else str(each.method)
        )
        rows.append((each.pod.key, each.leaf, how, _amounts(each.frees), each.for_unit))
    return render_rows(rows)


def _waiting(waiting: Sequence[QuotaWaiting]) -> list[str]:
    """The table, and then each sentence once, with the number of units that it applies to."""
    if not waiting:
        return []
    rows = [("WAITS", "PODS", "LEAF", "PLACE", "REASON")]
    rows += [
        (each.unit, str(each.pod_count), each.leaf, str(each.position), str(each.reason))
        for each in waiting
    ]
    units = Counter((each.leaf, each.message) for each in waiting)
    sentences = "".join(
        render_rows([(f"{leaf} ({number}): {message}",)])
        for (leaf, message), number in units.items()
    )
    return [render_rows(rows), sentences]


def _amounts(amounts: Amounts) -> str:
    """`5 cpu, 16Gi memory`."""
    return (
        ", ".join(
            f"{amount_text(resource, amount)} {resource}"
            for resource, amount in sorted(amounts.items())
        )
        or "-"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _paragraphs(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part)
