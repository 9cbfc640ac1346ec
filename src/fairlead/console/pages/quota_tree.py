"""The form of the page of the quota tree, and of its "what if": the effects of other bounds."""

from __future__ import annotations

import msgspec

from fairlead.console.pages.envelope import Envelope, Json, Sentence
from fairlead.console.pages.quota import TreeFault, WaitingUnit
from fairlead.errors import UserError

CHANGES_MAX = 1000


class QuotaBounds(Json, frozen=True):
    """One resource of a node, in `unit`.

    `max` is null when unlimited. `min_text` and `max_text` are the same as quantities, "" for a
    `max` that is unlimited. `min_counted` is what counts of `min`: less where the cluster has less
    than the mins promise. `over_max`: what is used above `max`. `waiting_pods`: those that ask for
    the resource and wait, in the node and below it.
    """

    resource: str
    unit: str
    min: float
    max: float | None
    min_counted: float
    over_max: float
    used: float
    min_text: str
    max_text: str
    waiting_pods: int


class QuotaTreeRow(Json, frozen=True):
    """`short_name`: the part of `name` after its parent's prefix."""

    name: str
    short_name: str
    path: str
    parent: str
    depth: int
    is_leaf: bool
    namespaces: list[str]
    attributes: dict[str, str]
    bounds: list[QuotaBounds]
    waiting_pods: int


class QuotaTreePage(Envelope, frozen=True):
    """All nodes, parents before children in the order written,
    each with all `resources` in this order.
    """

    sentence: Sentence
    resources: list[str]
    items: list[QuotaTreeRow]
    faults: list[TreeFault]


class BoundsChange(Json, frozen=True, forbid_unknown_fields=True):
    """`min` and `max` are quantities; null stays as it is. "" is no min, and no limit."""

    node: str
    resource: str
    min: str | None = None
    max: str | None = None


class QuotaWhatIf(Json, frozen=True, forbid_unknown_fields=True):
    """The question: what would happen if these bounds were others?"""

    changes: list[BoundsChange]


class MovedPod(Json, frozen=True):
    """A pod that would be admitted or evicted.

    For an evicted pod: `how` (`evict`, or `suspend` of its job) and `for_unit`, the unit that gets
    its room. For an admitted pod: `is_guaranteed`, within its leaf's min.
    """

    namespace: str
    pod: str
    leaf: str
    is_guaranteed: bool
    how: str
    for_unit: str


class LeafEffect(Json, frozen=True):
    """Pods of a leaf, now and in the settled state."""

    name: str
    path: str
    running_before: int
    running_after: int
    waiting_before: int
    waiting_after: int


class QuotaEffects(Envelope, frozen=True):
    """The effects of a changed tree. Nothing is written.

    `valid` false: the tree would be refused for its `faults`, and nothing else was computed.
    `admitted` and `evicted` in their order, the first 500 each, as `waiting`; the counts are of
    all. `leaves`: leaves that change. `plans`: number of plans until nothing is left to do.
    """

    valid: bool
    sentence: Sentence
    faults: list[TreeFault]
    admitted: list[MovedPod] = []
    admitted_count: int = 0
    evicted: list[MovedPod] = []
    evicted_count: int = 0
    leaves: list[LeafEffect] = []
    waiting: list[WaitingUnit] = []
    waiting_count: int = 0
    plans: int = 0


def parse_what_if(body: bytes) -> QuotaWhatIf:
    """Raises UserError for anything that is no such question."""
    try:
        asked = msgspec.json.decode(body or b"null", type=QuotaWhatIf)
    except msgspec.DecodeError as error:
        hint = 'send JSON such as {"changes": [{"node": "root.a", "resource": "cpu", "min": "10"}]}'
        raise UserError(f"this is no change of a quota tree: {error}", hint) from error
    if len(asked.changes) > CHANGES_MAX:
        raise UserError(
            f"{len(asked.changes)} changes are more than {CHANGES_MAX}",
            "ask about fewer at once",
        )
    return asked
