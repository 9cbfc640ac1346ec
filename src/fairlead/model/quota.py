"""The elastic quota tree: guaranteed `min`, ceiling `max`, namespaces on leaves.

Unlimited is a missing key in `max`; an absent `min` is zero. Amounts are in the units of `model.resources`
(`aliyun.com/gpu-mem` in GiB, as pods ask for it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from fairlead.model.resources import NOTHING, Amounts


class QuotaNode(Struct, frozen=True, gc=False):
    """`name` is unique over the tree (may itself be dotted).

    `path` is the dotted path of display names from root to here.
    """

    name: str
    path: str
    parent: str = ""
    min: Amounts = NOTHING
    max: Amounts = NOTHING
    namespaces: tuple[str, ...] = ()
    attributes: Mapping[str, str] = {}
    children: tuple[QuotaNode, ...] = ()

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
