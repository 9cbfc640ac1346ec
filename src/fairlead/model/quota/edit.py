"""An edit of the quota tree: the nodes as an administrator wants them, and a cell that is refused.

Specification: docs/spec/console.md#writing-the-quota-tree.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class EditedNode(Struct, frozen=True):
    """A node as it should be written. `name`: the full one; `parent`: the full name of the node
    above, "" for the root. `formerly`: its name in the stored tree, "" for a new node.

    `min`, `max`: quantities by resource. A resource that is absent has no bound; "" at the root is
    unlimited. The resources that the root names are those of the tree. `attributes`: all of them,
    None = as they are stored.
    """

    name: str
    parent: str = ""
    formerly: str = ""
    min: Mapping[str, str] = {}
    max: Mapping[str, str] = {}
    namespaces: tuple[str, ...] = ()
    attributes: Mapping[str, str] | None = None


class RefusedCell(Struct, frozen=True):
    """`path`: the node's name, then the part, such as `root.a.1.min.cpu`. `rule`: the editor's word
    for what is wrong; `code`: quota's. `message`: the sentence.
    """

    path: str
    rule: str
    code: str
    message: str


class CellChange(Struct, frozen=True):
    """`cell`: `name`, `namespaces`, a bound such as `min.cpu`, or an attribute such as
    `attributes.preempt-policy`; texts "" = nothing is written.
    """

    cell: str
    before: str
    after: str


class NodeChange(Struct, frozen=True):
    """A node that an edit adds, removes or changes. `change`: `added`, `removed` or `changed`."""

    name: str
    change: str
    cells: tuple[CellChange, ...] = ()


class TreeDifference(Struct, frozen=True):
    """What an edit changes. `raised`: leaves with a larger min, which may claim more. `governed`,
    `released`: namespaces that come under quota, and that leave it. `unknown`: namespaces of the
    tree that do not exist.
    """

    nodes: tuple[NodeChange, ...]
    raised: tuple[str, ...]
    governed: tuple[str, ...]
    released: tuple[str, ...]
    unknown: tuple[str, ...]
