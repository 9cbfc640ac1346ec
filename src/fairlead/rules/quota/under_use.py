"""Bounds of a quota tree that lie under what is used: a max that admits nobody until use is under it, and a
min whose owner loses a guarantee that pods use now (quota contract 2.14).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead.model.keys import DRAIN_OVER_MAX
from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode, Violation, ViolationCode
from fairlead.model.resources import amount_text
from fairlead.rules.quota.node_use import is_lost, node_uses

_NAMED_MAX: Final = 5


def use_warnings(state: QuotaState, before: QuotaNode | None = None) -> Iterator[Violation]:
    """Of a state with the tree that is judged. `before`: the tree that it replaces; None = it stands already.

    A lowered min is only told beforehand: afterwards it shows as quota that is borrowed.
    """
    uses = node_uses(state)
    pods = [pod for pod in state.pods if pod.is_admitted and not is_lost(pod, state.now, state.settings)]
    yield from over_max_now(state.tree, uses, pods)
    old = {node.name: node for node in before.walk()} if before is not None else {}
    for node, use in zip(state.tree.walk(), uses, strict=True):
        yield from _lowered_min(node, use, old.get(node.name), pods)
        yield from _firm_over_min(node, use, pods)


def over_max_now(root: QuotaNode, uses: Sequence[QuotaNodeUse], pods: Iterable[QuotaPod]) -> Iterator[Violation]:
    """`uses`: of every node of the tree, parents before children; `pods` are those that are charged."""
    for node, use in zip(root.walk(), uses, strict=True):
        for resource in sorted(use.over_max):
            used, most = amount_text(resource, use.used[resource]), amount_text(resource, node.max[resource])
            told = f"uses {used} {resource}, more than its max {most} ({_concerned(node, resource, pods)}); nothing is admitted there"
            if node.attributes.get(DRAIN_OVER_MAX) == "true":
                told = f"{told}, and {DRAIN_OVER_MAX} evicts down to it"
            else:
                told = f"{told} until it uses less, and a pod of higher priority may take the place of several"
            yield _warning(node, ViolationCode.OVER_MAX_NOW, told)


def _lowered_min(node: QuotaNode, use: QuotaNodeUse, old: QuotaNode | None, pods: Iterable[QuotaPod]) -> Iterator[Violation]:
    """Use that was guaranteed and will be borrowed."""
    for resource in sorted(old.min if old is not None else ()):
        least, was, used = node.min.get(resource, 0), old.min[resource] if old is not None else 0, use.used.get(resource, 0)
        lost = min(used, was) - least
        if lost > 0:
            texts = [amount_text(resource, amount) for amount in (was, least, used, lost)]
            told = f"min of {resource} is lowered from {texts[0]} to {texts[1]} while {texts[2]} are used"
            concerned = _concerned(node, resource, pods)
            yield _warning(node, ViolationCode.UNDER_USE, f"{told} ({concerned}); {texts[3]} of that become borrowed")


def _firm_over_min(node: QuotaNode, use: QuotaNodeUse, pods: Iterable[QuotaPod]) -> Iterator[Violation]:
    """What can never be taken back from it, although its min does not cover it."""
    for resource, used in sorted(use.firm_used.items() if node.is_leaf else ()):
        least = node.min.get(resource, 0)
        if used > least and resource not in node.unlimited_min:
            concerned = _concerned(node, resource, [pod for pod in pods if not pod.is_preemptible])
            told = f"pods that are not preemptible use {amount_text(resource, used)} {resource}, more than its min"
            rest = f"{amount_text(resource, least)} ({concerned}); nobody can take that back"
            yield _warning(node, ViolationCode.UNDER_USE, f"{told} {rest}")


def _concerned(node: QuotaNode, resource: str, pods: Iterable[QuotaPod]) -> str:
    """The first pods that use the resource there, the youngest first, and how many there are besides."""
    spaces = {space for leaf in node.leaves() for space in leaf.namespaces}
    found = [pod for pod in pods if pod.namespace in spaces and pod.request.get(resource)]
    found.sort(key=lambda pod: (-pod.created_at, pod.key))
    more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    word = "pod" if len(found) == 1 else "pods"
    return f"{word} {', '.join(pod.key for pod in found[:_NAMED_MAX])}{more}"


def _warning(node: QuotaNode, code: ViolationCode, told: str) -> Violation:
    return Violation(node.name, code, f"{node.name}: {told}", is_error=False)
