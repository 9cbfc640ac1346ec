"""All rules that a quota tree breaks, each in one sentence with node, resource and numbers.

Specification: docs/spec/quota.md#validation.

A tree with a violation that `stops` admits and evicts nothing. Amounts are compared only if the
whole tree could be read: otherwise a sentence would claim that a parent has nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.model.keys import (
    ANNOTATION_ADOPT_RUNNING,
    BARE_PODS_PREEMPTIBLE,
    DRAIN_OVER_MAX,
    LEND_LIMIT,
    LONGEST_GRACE,
    MAX_JOBS,
    PREEMPT_POLICY,
    QUEUE,
    RECLAIM_SCOPE,
    REFUSED_VICTIM_WAIT,
    STUCK_AFTER,
    SURGE_WAIT,
    UNBOUND_RETURN,
    USER_CAP,
    USER_ORDER,
)
from fairlead.model.pod import Pod, PodPhase
from fairlead.model.quota.plan import QuotaNodeUse
from fairlead.model.quota.rows import LeafGroup
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import STOPPING, QuotaNode, QuotaTree, Violation, ViolationCode
from fairlead.model.resources import Amounts, amount_text
from fairlead.rules.quota.managed import KUBERNETES_NAMESPACES, PROTECTED, is_charged
from fairlead.rules.quota.node_use import is_lost, node_uses

TREE_NAME: Final = "elasticquotatree"
TREE_NAMESPACE: Final = "kube-system"

_PLACES: Final = {
    LEND_LIMIT: "",
    DRAIN_OVER_MAX: "",
    RECLAIM_SCOPE: "root",
    PREEMPT_POLICY: "leaf",
    USER_CAP: "leaf",
    USER_ORDER: "leaf",
    QUEUE: "leaf",
    **dict.fromkeys(
        (
            SURGE_WAIT,
            REFUSED_VICTIM_WAIT,
            UNBOUND_RETURN,
            STUCK_AFTER,
            LONGEST_GRACE,
            BARE_PODS_PREEMPTIBLE,
        ),
        "root",
    ),
}
_NAMED_MAX: Final = 5


def validate(
    tree: QuotaTree,
    old: QuotaTree | None = None,
    namespaces: Collection[str] | None = None,
    pods: Iterable[Pod] = (),
    groups: Sequence[LeafGroup] = (),
    *,
    capacity: Amounts | None = None,
    state: QuotaState | None = None,
    own: Collection[str] = (),
) -> tuple[Violation, ...]:
    """Errors first, each kind in the order of the tree.

    `old`: the tree that the write replaces; None = there is none; the tree itself = no write is
    judged, and running pods of moved namespaces are not looked for. `namespaces`: names of the
    existing namespaces, `capacity`: what the cluster has, `state`: its pods as quota counts them
    under this tree; None = not known. `own`: Fairlead's namespaces, if they are not the default.
    """
    found = [*tree.faults, *_identity(tree)]
    if state is not None and tree.root is not None and not tree.faults:
        found += use_warnings(state, old.root if old is not None and old is not tree else None)
    if tree.root is not None:
        found += _names(tree.root)
        found += _namespaces(tree.root, namespaces, own)
        if not tree.faults:
            found += _amounts(tree.root, capacity)
        found += _attributes(tree.root)
        found += _unused(tree.root, groups)
        found += _bound(tree.root, old, groups)
        found += _busy(tree, old, pods)
    return tuple(sorted(found, key=lambda each: not each.is_error))


def validate_deletion(old: QuotaTree, groups: Sequence[LeafGroup] = ()) -> tuple[Violation, ...]:
    """Why the tree may not be deleted."""
    leaves = old.root.leaves() if old.root else ()
    return tuple(
        _bound_leaf(leaf, groups, "the tree is deleted") for leaf in leaves if _holds(leaf, groups)
    )


def _error(path: str, code: ViolationCode, message: str, cell: str = "") -> Violation:
    return Violation(path, code, f"{path}: {message}", stops=code in STOPPING, cell=cell)


def _warning(path: str, code: ViolationCode, message: str, cell: str = "") -> Violation:
    return Violation(path, code, f"{path}: {message}", is_error=False, cell=cell)


def _identity(tree: QuotaTree) -> Iterator[Violation]:
    if (tree.namespace, tree.name) != (TREE_NAMESPACE, TREE_NAME):
        path = f"{tree.namespace}/{tree.name}"
        yield _error(
            path,
            ViolationCode.NOT_THE_TREE,
            f"the one tree of a cluster is {TREE_NAMESPACE}/{TREE_NAME}",
        )


def _names(root: QuotaNode) -> Iterator[Violation]:
    parents: defaultdict[str, list[str]] = defaultdict(list)
    for node in root.walk():
        parents[node.name].append(node.parent)
    for name, above in parents.items():
        if len(above) > 1:
            places = ", ".join(f"under {parent}" if parent else "as root" for parent in _few(above))
            yield _error(
                name,
                ViolationCode.DUPLICATE_NAME,
                f"{len(above)} nodes have this name ({places})",
                "name",
            )


def _namespaces(
    root: QuotaNode, there: Collection[str] | None, own: Collection[str]
) -> Iterator[Violation]:
    leaf_of: dict[str, str] = {}
    for node in root.walk():
        if node.children and node.namespaces:
            sentence = ", ".join(_few(node.namespaces))
            yield _error(
                node.name,
                ViolationCode.PARENT_WITH_NAMESPACES,
                f"has children and namespaces ({sentence}); only a leaf has namespaces",
                "namespaces",
            )
        for namespace in node.namespaces:
            other = leaf_of.get(namespace)
            leaf_of[namespace] = node.name
            if other is not None:
                sentence = (
                    f"is on {other} as well" if other != node.name else "is listed here twice"
                )
                yield _error(
                    node.name,
                    ViolationCode.NAMESPACE_IN_TWO_LEAVES,
                    f"namespace {namespace} {sentence}",
                    "namespaces",
                )
            if namespace in PROTECTED or namespace in own:
                owner = "Kubernetes'" if namespace in KUBERNETES_NAMESPACES else "Fairlead's"
                yield _error(
                    node.name,
                    ViolationCode.PROTECTED_NAMESPACE,
                    f"namespace {namespace} is one of {owner} own and takes no quota",
                    "namespaces",
                )
            if there is not None and namespace not in there:
                yield _warning(
                    node.name,
                    ViolationCode.NO_SUCH_NAMESPACE,
                    f"namespace {namespace} does not exist yet",
                    "namespaces",
                )


def _amounts(root: QuotaNode, capacity: Amounts | None) -> Iterator[Violation]:
    yield from _root_bounds(root, capacity)
    nothing: Mapping[str, tuple[int, str]] = {}
    ahead = [(root, nothing)]
    named = ", ".join(_few(sorted(root.resources))) or "none"
    known = {*root.resources, MAX_JOBS}
    while ahead:
        node, above = ahead.pop()
        if node is not root:
            yield from _known(node, root.name, known, named)
            yield from _unlimited_min(node)
        yield from _own_bounds(node)
        yield from _ceilings(node, above)
        if node.children:
            yield from _sums_of_min(node, is_root=node is root)
            here = (
                {**above, **{resource: (most, node.name) for resource, most in node.max.items()}}
                if node.max
                else above
            )
            ahead += [(child, here) for child in reversed(node.children)]


def _root_bounds(root: QuotaNode, capacity: Amounts | None) -> Iterator[Violation]:
    for resource in sorted(root.resources - {MAX_JOBS}):
        least = None if resource in root.unlimited_min else root.min.get(resource, 0)
        most = root.max.get(resource)
        if least != most:
            sentence = (
                f"min of {resource} is {_text(resource, least)} and max is "
                f"{_text(resource, most)}; they must be equal at the root"
            )
            yield _error(root.name, ViolationCode.ROOT_MIN_NOT_MAX, sentence, f"min.{resource}")
        if capacity is not None and most is not None and most > capacity.get(resource, 0):
            there = _text(resource, capacity.get(resource, 0))
            sentence = f"max of {resource} is {_text(resource, most)}, and the cluster has {there}"
            yield _warning(
                root.name, ViolationCode.ROOT_EXCEEDS_CLUSTER, sentence, f"max.{resource}"
            )


def _known(node: QuotaNode, root: str, known: Collection[str], named: str) -> Iterator[Violation]:
    """Unknown resources of a node.

    `known`: resources that the root names; `named`: the same as text, made once for the whole tree.
    """
    for resource in sorted({*node.resources, *node.lend_limit, *node.user_cap}.difference(known)):
        yield _error(
            node.name,
            ViolationCode.UNKNOWN_RESOURCE,
            f"names {resource}, which {root} does not; it names {named}",
            f"{'max' if resource in node.max or resource in node.unlimited else 'min'}.{resource}",
        )


def _unlimited_min(node: QuotaNode) -> Iterator[Violation]:
    for resource in node.unlimited_min:
        yield _error(
            node.name,
            ViolationCode.UNLIMITED_MIN,
            f"min of {resource} is unlimited; only the root's may be",
            f"min.{resource}",
        )


def _own_bounds(node: QuotaNode) -> Iterator[Violation]:
    for resource, least in node.min.items():
        most = node.max.get(resource)
        if most is not None and least > most:
            sentence = (
                f"min of {resource} is {_text(resource, least)}, more than its own max "
                f"{_text(resource, most)}"
            )
            yield _error(node.name, ViolationCode.MIN_EXCEEDS_MAX, sentence, f"min.{resource}")


def _ceilings(node: QuotaNode, above: Mapping[str, tuple[int, str]]) -> Iterator[Violation]:
    for resource, most in node.max.items():
        ceiling, owner = above.get(resource, (most, ""))
        if most > ceiling:
            sentence = (
                f"max of {resource} is {_text(resource, most)}, more than the max "
                f"{_text(resource, ceiling)} of {owner}"
            )
            yield _error(node.name, ViolationCode.MAX_EXCEEDS_PARENT, sentence, f"max.{resource}")


def _sums_of_min(node: QuotaNode, *, is_root: bool) -> Iterator[Violation]:
    total: Counter[str] = Counter()
    for child in node.children:
        total.update(child.min)
    for resource in sorted({*total, *node.min}):
        if is_root and resource in node.unlimited_min:
            continue
        own, promised = node.min.get(resource, 0), total[resource]
        if promised > own:
            parts = [
                f"{child.name} {_text(resource, child.min[resource])}"
                for child in node.children
                if child.min.get(resource)
            ]
            sentence = (
                f"children guarantee {_text(resource, promised)} {resource} "
                f"({', '.join(_few(parts))}), more than its own min"
            )
            yield _error(
                node.name,
                ViolationCode.SUM_OF_MIN_EXCEEDS_PARENT,
                f"{sentence} {_text(resource, own)}",
                f"min.{resource}",
            )
        elif promised < own:
            sentence = (
                f"children guarantee {_text(resource, promised)} of its min "
                f"{_text(resource, own)} {resource}"
            )
            left = f"{sentence}; no child can claim the other {_text(resource, own - promised)}"
            yield _warning(
                node.name, ViolationCode.SUM_OF_MIN_BELOW_PARENT, left, f"min.{resource}"
            )


def _attributes(root: QuotaNode) -> Iterator[Violation]:
    for node in root.walk():
        for key in node.attributes:
            place = _PLACES.get(key)
            if place is None:
                yield _warning(
                    node.name,
                    ViolationCode.ATTRIBUTE_NOT_ENFORCED,
                    f"attribute {key} is kept and not enforced",
                )
            elif (place == "root" and node is not root) or (place == "leaf" and not node.is_leaf):
                where = "on the root alone" if place == "root" else "on leaves alone"
                yield _warning(
                    node.name,
                    ViolationCode.ATTRIBUTE_NOT_ENFORCED,
                    f"attribute {key} is not enforced here; it counts {where}",
                )


def _unused(root: QuotaNode, groups: Sequence[LeafGroup]) -> Iterator[Violation]:
    named = {group.leaf for group in groups}
    for leaf in root.leaves():
        if not leaf.namespaces and leaf.name not in named:
            yield _warning(
                leaf.name,
                ViolationCode.LEAF_WITHOUT_NAMESPACE,
                "has no namespace and no group, so no pod can use it",
            )


def _bound(
    root: QuotaNode, old: QuotaTree | None, groups: Sequence[LeafGroup]
) -> Iterator[Violation]:
    before = old.root if old else None
    if before is None:
        return
    nodes = {node.name: node for node in root.walk()}
    fresh = _new_leaves(root, before)
    for leaf in before.leaves():
        now = nodes.get(leaf.name)
        if (
            not _holds(leaf, groups)
            or (now is not None and now.is_leaf)
            or (now is None and frozenset(leaf.namespaces) in fresh)
        ):
            continue
        yield _bound_leaf(leaf, groups, "is removed" if now is None else "is given children")


def _new_leaves(root: QuotaNode, before: QuotaNode) -> dict[frozenset[str], str]:
    """New names of leaves, by their namespaces: one may be an old leaf under another name."""
    known = {node.name for node in before.walk()}
    return {
        frozenset(leaf.namespaces): leaf.name
        for leaf in root.leaves()
        if leaf.namespaces and leaf.name not in known
    }


def _holds(leaf: QuotaNode, groups: Sequence[LeafGroup]) -> bool:
    return bool(leaf.namespaces) or any(group.leaf == leaf.name for group in groups)


def _bound_leaf(leaf: QuotaNode, groups: Sequence[LeafGroup], what: str) -> Violation:
    parts = _few([f"namespace {name}" for name in leaf.namespaces])
    parts += [f"UserGroup {group.name}" for group in groups if group.leaf == leaf.name]
    return _error(
        leaf.name,
        ViolationCode.LEAF_BOUND,
        f"{what} and still has {', '.join(parts)}; take that off the leaf first",
    )


def _busy(tree: QuotaTree, old: QuotaTree | None, pods: Iterable[Pod]) -> Iterator[Violation]:
    moved = _moved(tree, old)
    if not moved:
        return
    running: defaultdict[str, list[str]] = defaultdict(list)
    for pod in pods:
        if pod.namespace in moved and pod.phase == PodPhase.RUNNING and is_charged(pod):
            running[pod.namespace].append(pod.name)
    is_adopted = tree.annotations.get(ANNOTATION_ADOPT_RUNNING) == "true"
    for namespace, (leaf, what) in moved.items():
        if names := running.get(namespace):
            sentence = (
                f"namespace {namespace} {what} while {len(names)} of its pods run "
                f"({', '.join(_few(sorted(names)))})"
            )
            if is_adopted:
                yield _warning(
                    leaf,
                    ViolationCode.NAMESPACE_BUSY,
                    f"{sentence}; they are charged as they are",
                    "namespaces",
                )
            else:
                hint = (
                    "wait until they have ended, or annotate the tree with "
                    f'{ANNOTATION_ADOPT_RUNNING}: "true"'
                )
                yield _error(
                    leaf, ViolationCode.NAMESPACE_BUSY, f"{sentence}; {hint}", "namespaces"
                )


def _moved(tree: QuotaTree, old: QuotaTree | None) -> dict[str, tuple[str, str]]:
    """Namespaces that change their leaf: by name the leaf to report, and what happens.

    A leaf that is renamed and keeps its namespaces moves none.
    """
    if tree.root is None or old is tree:
        return {}
    now = _leaf_of(tree.root)
    if old is None or old.root is None:
        return {namespace: (leaf, "is added") for namespace, leaf in now.items()}
    fresh = _new_leaves(tree.root, old.root)
    names = {node.name for node in tree.root.walk()}
    renamed = {
        leaf.name: fresh[key]
        for leaf in old.root.leaves()
        if leaf.name not in names and (key := frozenset(leaf.namespaces)) in fresh
    }
    before = {namespace: renamed.get(leaf, leaf) for namespace, leaf in _leaf_of(old.root).items()}
    moved: dict[str, tuple[str, str]] = {}
    for namespace, leaf in now.items():
        was = before.get(namespace)
        if was != leaf:
            moved[namespace] = (leaf, "is added" if was is None else f"is moved here from {was}")
    return moved | {
        namespace: (leaf, "is removed")
        for namespace, leaf in before.items()
        if namespace not in now
    }


def _leaf_of(root: QuotaNode) -> dict[str, str]:
    return {namespace: node.name for node in root.walk() for namespace in node.namespaces}


def _text(resource: str, amount: int | None) -> str:
    return "unlimited" if amount is None else amount_text(resource, amount)


def _few(parts: Sequence[str]) -> list[str]:
    """The first parts, and the number of the others."""
    return (
        [*parts]
        if len(parts) <= _NAMED_MAX
        else [*parts[:_NAMED_MAX], f"and {len(parts) - _NAMED_MAX} more"]
    )


# --- bounds below what is used --------------------------------------------------------------------


def use_warnings(state: QuotaState, before: QuotaNode | None = None) -> Iterator[Violation]:
    """Warnings about a tree and the state under it.

    `before`: the tree that it replaces; None = it is in use.

    A lowered min is only reported before the write: afterwards it shows as borrowed quota.
    """
    uses = node_uses(state)
    pods = [
        pod for pod in state.pods if pod.is_admitted and not is_lost(pod, state.now, state.settings)
    ]
    yield from over_max_now(state.tree, uses, pods)
    old = {node.name: node for node in before.walk()} if before is not None else {}
    for node, use in zip(state.tree.walk(), uses, strict=True):
        yield from _lowered_min(node, use, old.get(node.name), pods)
        yield from _firm_over_min(node, use, pods)


def over_max_now(
    root: QuotaNode, uses: Sequence[QuotaNodeUse], pods: Iterable[QuotaPod]
) -> Iterator[Violation]:
    """`uses`: of every node of the tree, parents before children; `pods`: the charged pods."""
    for node, use in zip(root.walk(), uses, strict=True):
        for resource in sorted(use.over_max):
            used, most = (
                amount_text(resource, use.used[resource]),
                amount_text(resource, node.max[resource]),
            )
            sentence = (
                f"uses {used} {resource}, more than its max {most} "
                f"({_concerned(node, resource, pods)}); nothing is admitted there"
            )
            if node.attributes.get(DRAIN_OVER_MAX) == "true":
                sentence = f"{sentence}, and {DRAIN_OVER_MAX} evicts down to it"
            else:
                sentence = (
                    f"{sentence} until it uses less, and a pod of higher priority may take the "
                    "place of several"
                )
            yield _warning(node.name, ViolationCode.OVER_MAX_NOW, sentence, f"max.{resource}")


def _lowered_min(
    node: QuotaNode, use: QuotaNodeUse, old: QuotaNode | None, pods: Iterable[QuotaPod]
) -> Iterator[Violation]:
    """Use that was guaranteed and becomes borrowed."""
    for resource in sorted(old.min if old is not None else ()):
        least, was, used = (
            node.min.get(resource, 0),
            old.min[resource] if old is not None else 0,
            use.used.get(resource, 0),
        )
        lost = min(used, was) - least
        if lost > 0:
            texts = [amount_text(resource, amount) for amount in (was, least, used, lost)]
            sentence = (
                f"min of {resource} is lowered from {texts[0]} to {texts[1]} while {texts[2]} are "
                "used"
            )
            concerned = _concerned(node, resource, pods)
            yield _warning(
                node.name,
                ViolationCode.UNDER_USE,
                f"{sentence} ({concerned}); {texts[3]} of that become borrowed",
                f"min.{resource}",
            )


def _firm_over_min(
    node: QuotaNode, use: QuotaNodeUse, pods: Iterable[QuotaPod]
) -> Iterator[Violation]:
    """Use that can never be taken back from the leaf, although its min does not cover it."""
    for resource, used in sorted(use.firm_used.items() if node.is_leaf else ()):
        least = node.min.get(resource, 0)
        if used > least and resource not in node.unlimited_min:
            concerned = _concerned(node, resource, [pod for pod in pods if not pod.is_preemptible])
            sentence = (
                f"pods that are not preemptible use {amount_text(resource, used)} {resource}, "
                "more than its min"
            )
            rest = f"{amount_text(resource, least)} ({concerned}); quota cannot take that back"
            yield _warning(node.name, ViolationCode.UNDER_USE, f"{sentence} {rest}")


def _concerned(node: QuotaNode, resource: str, pods: Iterable[QuotaPod]) -> str:
    """The youngest pods of the node that use the resource, and the number of the others."""
    spaces = {space for leaf in node.leaves() for space in leaf.namespaces}
    found = [pod for pod in pods if pod.namespace in spaces and pod.request.get(resource)]
    found.sort(key=lambda pod: (-pod.created_at, pod.key))
    more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    word = "pod" if len(found) == 1 else "pods"
    return f"{word} {', '.join(pod.key for pod in found[:_NAMED_MAX])}{more}"
