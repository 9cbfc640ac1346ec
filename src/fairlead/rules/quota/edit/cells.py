"""Which cells of an edited quota tree are refused, by which rule, and what the editor checks beside
`rules/quota/validate`.

Specification: docs/spec/console.md#writing-the-quota-tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fairlead.model.quota.edit import EditedNode, RefusedCell
from fairlead.model.quota.tree import QuotaNode, Violation, ViolationCode
from fairlead.model.resources import UNLIMITED, is_byte_resource

RULES: Final[Mapping[str, str]] = {
    ViolationCode.NOT_THE_TREE: "name",
    ViolationCode.BAD_SHAPE: "quantity",
    ViolationCode.DUPLICATE_NAME: "name",
    ViolationCode.NAMESPACE_IN_TWO_LEAVES: "ns-once",
    ViolationCode.PARENT_WITH_NAMESPACES: "ns-leaf",
    ViolationCode.PROTECTED_NAMESPACE: "ns-leaf",
    ViolationCode.SUM_OF_MIN_EXCEEDS_PARENT: "children-min",
    ViolationCode.MAX_EXCEEDS_PARENT: "child-max",
    ViolationCode.UNKNOWN_RESOURCE: "resource-known",
    ViolationCode.MIN_EXCEEDS_MAX: "min-le-max",
    ViolationCode.ROOT_MIN_NOT_MAX: "root-equal",
    ViolationCode.UNLIMITED_MIN: "quantity",
    ViolationCode.NAMESPACE_BUSY: "ns-quiet",
    ViolationCode.LEAF_BOUND: "delete-leaf",
}
"""The editor's rule of each code that refuses a tree. Of a malformed part the cell decides, too."""
_RULE_OF_PART: Final = {"name": "name", "namespaces": "ns-leaf", "attributes": "attribute"}
_SEGMENT: Final = re.compile(r"[A-Za-z0-9][-_A-Za-z0-9]{0,62}")
_BARE: Final = re.compile(r"\+?[0-9]+")


def refused_cells(
    violations: Iterable[Violation], tree: QuotaNode | None, old: QuotaNode | None
) -> list[RefusedCell]:
    """A cell for every violation that refuses the tree. `old`: the tree that is replaced.

    Too large a sum of mins is shown on the mins that were raised, else on the min of the node.
    """
    nodes = {node.name: node for node in tree.walk()} if tree is not None else {}
    before = {node.name: node for node in old.walk()} if old is not None else {}
    found = []
    for each in violations:
        if each.is_error:
            rule = rule_of(each)
            places = _raised(each, nodes, before) or [_place(each.path, each.cell)]
            found += [RefusedCell(place, rule, str(each.code), each.message) for place in places]
    return found


def rule_of(violation: Violation) -> str:
    """The editor's rule that the violation breaks."""
    if violation.code == ViolationCode.BAD_SHAPE and violation.cell in _RULE_OF_PART:
        return _RULE_OF_PART[violation.cell]
    return RULES.get(violation.code, "quantity")


def edit_faults(nodes: Iterable[EditedNode], old: QuotaNode | None) -> Iterator[Violation]:
    """What the editor refuses although quota would accept it.

    New names have the form of the editor, and new amounts of memory have a suffix: a bare 128 is
    128 bytes. What was written by others stays as it is.
    """
    before = {node.name: node for node in old.walk()} if old is not None else {}
    for node in nodes:
        was = before.get(node.formerly)
        if was is None or was.name != node.name:
            yield from _name_faults(node)
        if node.attributes is not None and "" in node.attributes:
            yield _malformed(node.name, f"{node.name}: an attribute has no name", "attributes")
        for bound, amounts in (("min", node.min), ("max", node.max)):
            stored = {} if was is None else was.min if bound == "min" else was.max
            for resource, text in amounts.items():
                if _is_bare(resource, text) and stored.get(resource) != int(text):
                    message = (
                        f"{node.name}: {bound} of {resource} is `{text[:60]}`, which is that many "
                        f"bytes; write a suffix, such as {text[:60].lstrip('+')}Gi"
                    )
                    yield _malformed(node.name, message, f"{bound}.{resource}")


def _name_faults(node: EditedNode) -> Iterator[Violation]:
    prefix = f"{node.parent}." if node.parent else ""
    segment = node.name[len(prefix) :] if prefix else node.name
    segment = segment if node.name.startswith(prefix) else node.name
    if not _SEGMENT.fullmatch(segment):
        message = (
            f"`{segment[:80]}` is no name of a node: 1 to 63 letters, digits, `-` and `_`, and the "
            "first is a letter or a digit"
        )
        yield _malformed(node.name, message, "name")


def _malformed(path: str, message: str, cell: str) -> Violation:
    return Violation(path, ViolationCode.BAD_SHAPE, message, cell=cell)


def _is_bare(resource: str, text: str) -> bool:
    if not is_byte_resource(resource) or not _BARE.fullmatch(text):
        return False
    return len(text) <= 60 and int(text) not in (0, UNLIMITED)


def _raised(
    violation: Violation, nodes: Mapping[str, QuotaNode], before: Mapping[str, QuotaNode]
) -> list[str]:
    """The cells of children whose min was raised, of a sum of mins that is too large."""
    if violation.code != ViolationCode.SUM_OF_MIN_EXCEEDS_PARENT or violation.path not in nodes:
        return []
    resource = violation.cell.removeprefix("min.")
    return [
        _place(child.name, violation.cell)
        for child in nodes[violation.path].children
        if child.min.get(resource, 0)
        > (before[child.name].min.get(resource, 0) if child.name in before else 0)
    ]


def _place(node: str, cell: str) -> str:
    return f"{node}.{cell}" if cell else node
