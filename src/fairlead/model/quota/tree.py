"""The elastic quota tree: guaranteed `min`, ceiling `max`, namespaces on leaves.

Unlimited is a missing key in `max`; an absent `min` is zero. Amounts are in the units of `model.resources`
(`aliyun.com/gpu-mem` in GiB, as pods ask for it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from fairlead.model.resources import NOTHING, Amounts


class QuotaNode(Struct, frozen=True, gc=False):
    """`name` is unique over the tree (may itself be dotted).

    `path` is the dotted path of display names from root to here.

    `lend_limit`: the most of its min that may be lent, for the resources that it names.
    """

    name: str
    path: str
    parent: str = ""
    min: Amounts = NOTHING
    max: Amounts = NOTHING
    namespaces: tuple[str, ...] = ()
    attributes: Mapping[str, str] = {}
    children: tuple[QuotaNode, ...] = ()
    lend_limit: Amounts = NOTHING

    @property
    def is_leaf(self) -> bool:
        return not self.children

    @property
    def short_name(self) -> str:
        """The name without its parent's dotted prefix (`root.a.1` under `root.a` shows as `1`)."""
        prefix = f"{self.parent}." if self.parent else ""
        return self.name[len(prefix) :] if prefix and self.name.startswith(prefix) else self.name

    def walk(self) -> Iterator[QuotaNode]:
        """This node, then everything below it, parents before children, in the order written."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[QuotaNode]:
        return (node for node in self.walk() if node.is_leaf)


class Violation(Struct, frozen=True):
    """What is wrong with a tree (quota contract 1.4). `path`: the name of the node at fault.

    `stops`: nothing is admitted or evicted while it is so. `is_error` false: a warning, and no write is
    refused for it.
    """

    path: str
    code: str
    message: str
    is_error: bool = True
    stops: bool = False


class QuotaTree(Struct, frozen=True):
    """The object that holds the tree. `root` is None when it has none, or none that can be read.

    `faults`: what could not be read of it (`BadShape`). `annotations` holds only keys that Fairlead reads.
    """

    name: str
    namespace: str
    root: QuotaNode | None = None
    uid: str = ""
    generation: int = 0
    annotations: Mapping[str, str] = {}
    faults: tuple[Violation, ...] = ()
    status: Mapping[str, Any] = {}
