"""The elastic quota tree: nodes with guaranteed `min`, ceiling `max`, and namespaces on leaves.

A resource that is absent in `max` is unlimited; one that is absent in `min` is zero. Amounts are in
the units of `model.resources` (`aliyun.com/gpu-mem` in GiB, as pods ask for it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.keys import QUEUE
from fairlead.model.resources import NOTHING, Amounts


class QuotaNode(Struct, frozen=True, gc=False):
    """`name` is unique in the tree, and may contain dots.

    `path`: the display names from the root to this node, joined by dots.

    `lend_limit`: the part of its min that may be lent, for the resources that it names. `user_cap`:
    the most that a user may have admitted in this leaf; `user_caps`: the same for some users, by
    id, from the leaf's user group (not a part of the tree's spec). `unlimited`: resources whose
    max is written as unlimited; `unlimited_min`: the same for min, where they count as 0.
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
    user_cap: Amounts = NOTHING
    user_caps: Mapping[str, Amounts] = {}
    unlimited: tuple[str, ...] = ()
    unlimited_min: tuple[str, ...] = ()

    @property
    def resources(self) -> frozenset[str]:
        """The resources in its min or max, including unlimited ones.

        For the root: what the tree manages.
        """
        return frozenset((*self.min, *self.max, *self.unlimited, *self.unlimited_min))

    def cap_of(self, user: str) -> Amounts:
        """The most that the user may have admitted in this leaf; a resource of the user's own caps
        comes before the leaf's.

        >>> leaf = QuotaNode("a", "a", user_cap={"cpu": 1, "x": 2}, user_caps={"bob": {"cpu": 5}})
        >>> leaf.cap_of("bob"), leaf.cap_of("eve")
        ({'cpu': 5, 'x': 2}, {'cpu': 1, 'x': 2})
        """
        own = self.user_caps.get(user)
        return {**self.user_cap, **own} if own else self.user_cap

    def with_user_caps(self, caps: Mapping[str, Mapping[str, Amounts]]) -> QuotaNode:
        """The same tree with these caps, by leaf and user, and no others."""
        if self.is_leaf:
            return replace(self, user_caps=caps.get(self.name, {}))
        return replace(self, children=tuple(each.with_user_caps(caps) for each in self.children))

    @property
    def is_leaf(self) -> bool:
        return not self.children

    @property
    def is_strict(self) -> bool:
        """Whether it is a strict leaf: later units wait for the first (`fairlead.io/queue`)."""
        return self.is_leaf and self.attributes.get(QUEUE) == "strict"

    @property
    def short_name(self) -> str:
        """The name without its parent's dotted prefix (`1` for `root.a.1` under `root.a`)."""
        prefix = f"{self.parent}." if self.parent else ""
        return self.name[len(prefix) :] if prefix and self.name.startswith(prefix) else self.name

    def walk(self) -> Iterator[QuotaNode]:
        """This node, then all below it, parents before children, in the order of the tree."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += reversed(node.children)

    def leaves(self) -> Iterator[QuotaNode]:
        return (node for node in self.walk() if node.is_leaf)


class ViolationCode(StrEnum):
    """What can be wrong with a tree; the last seven are warnings.

    Specification: docs/spec/quota.md#validation.
    """

    NOT_THE_TREE = "NotTheTree"
    BAD_SHAPE = "BadShape"
    DUPLICATE_NAME = "DuplicateName"
    NAMESPACE_IN_TWO_LEAVES = "NamespaceInTwoLeaves"
    PARENT_WITH_NAMESPACES = "ParentWithNamespaces"
    PROTECTED_NAMESPACE = "ProtectedNamespace"
    SUM_OF_MIN_EXCEEDS_PARENT = "SumOfMinExceedsParent"
    MAX_EXCEEDS_PARENT = "MaxExceedsParent"
    UNKNOWN_RESOURCE = "UnknownResource"
    MIN_EXCEEDS_MAX = "MinExceedsMax"
    ROOT_MIN_NOT_MAX = "RootMinNotMax"
    UNLIMITED_MIN = "UnlimitedMin"
    NAMESPACE_BUSY = "NamespaceBusy"
    LEAF_BOUND = "LeafBound"
    ATTRIBUTE_NOT_ENFORCED = "AttributeNotEnforced"
    ROOT_EXCEEDS_CLUSTER = "RootExceedsCluster"
    NO_SUCH_NAMESPACE = "NoSuchNamespace"
    LEAF_WITHOUT_NAMESPACE = "LeafWithoutNamespace"
    SUM_OF_MIN_BELOW_PARENT = "SumOfMinBelowParent"
    OVER_MAX_NOW = "OverMaxNow"
    UNDER_USE = "UnderUse"


STOPPING = frozenset(
    (
        ViolationCode.BAD_SHAPE,
        ViolationCode.DUPLICATE_NAME,
        ViolationCode.NAMESPACE_IN_TWO_LEAVES,
        ViolationCode.PARENT_WITH_NAMESPACES,
    )
)
"""While a stored tree has one of these, nothing is admitted and nothing evicted."""


class Violation(Struct, frozen=True):
    """A mistake in a tree (docs/spec/quota.md#validation). `path`: the name of the node.

    `stops`: nothing is admitted or evicted while it exists. `is_error` False: a warning, which does
    not prevent writing the tree. `cell`: the part of the node: `name`, `namespaces`, or a bound
    such as `min.cpu`; "" = the node.
    """

    path: str
    code: str
    message: str
    is_error: bool = True
    stops: bool = False
    cell: str = ""


class QuotaSettings(Struct, frozen=True):
    """Settings in attributes of the tree's root. Times are in seconds.

    For the defaults see docs/spec/quota.md#preemption-inside-a-leaf, docs/spec/quota.md#victims and
    docs/spec/quota.md#timers.

    `surge_wait_seconds`: how long a pod of a rolling update waits before it takes an older pod's
    place. `refusal_seconds`: how long a pod is no victim after its eviction was refused.
    `unbound_seconds`: how long an admitted pod may have no node. `stuck_seconds`: how long a
    stopping pod is counted. `longest_grace_seconds`: the longest grace period of a victim.
    """

    surge_wait_seconds: float = 60.0
    refusal_seconds: float = 30.0
    unbound_seconds: float = 300.0
    stuck_seconds: float = 300.0
    longest_grace_seconds: float = 300.0
    are_bare_pods_preemptible: bool = False


class AdmittedUse(Struct, frozen=True):
    """What a user has admitted in a leaf."""

    leaf: str
    user: str
    used: Amounts


class QuotaTree(Struct, frozen=True):
    """The ElasticQuotaTree object. `root` is None when it has none, or a malformed one.

    `user_use`: of its status, as the quota controller last wrote it.

    `faults`: its malformed parts (`BadShape`; `root` has the other parts). `annotations` has only
    keys that Fairlead reads.
    """

    name: str
    namespace: str
    root: QuotaNode | None = None
    uid: str = ""
    generation: int = 0
    annotations: Mapping[str, str] = {}
    settings: QuotaSettings = QuotaSettings()
    faults: tuple[Violation, ...] = ()
    status: Mapping[str, Any] = {}
    user_use: tuple[AdmittedUse, ...] = ()

    @property
    def sound_root(self) -> QuotaNode | None:
        """The root of a tree without malformed parts; None otherwise."""
        return None if self.faults else self.root
