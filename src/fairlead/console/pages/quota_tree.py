"""The form of the page of the quota tree, and of its "what if": the effects of other bounds."""

from __future__ import annotations

import msgspec

from fairlead.console.pages.envelope import Envelope, FieldFault, Json, Sentence
from fairlead.console.pages.quota import TreeFault, WaitingUnit
from fairlead.console.pages.writing.preview import Effect
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

    For administrators: `tree_version` is what `If-Match` of a write names: it changes with the tree
    and not with its status; `none` = there is no tree, "" = the tree cannot be written here.
    `managed`: resources that the root names.
    """

    sentence: Sentence
    resources: list[str]
    items: list[QuotaTreeRow]
    faults: list[TreeFault]
    tree_version: str = ""
    managed: list[str] = []


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


class TreeNodeOrder(Json, frozen=True, forbid_unknown_fields=True):
    """A node as it should be written, by full names. `parent`: "" for the root. `formerly`: its
    name in the stored tree, "" for a new node.

    `min`, `max`: quantities by resource; an absent resource has no bound, "" at the root is
    unlimited. `attributes`: all of the node, null = as they are stored.
    """

    name: str
    parent: str = ""
    formerly: str = ""
    min: dict[str, str] = {}
    max: dict[str, str] = {}
    namespaces: list[str] = []
    attributes: dict[str, str] | None = None


class QuotaTreeOrder(Json, frozen=True, forbid_unknown_fields=True):
    """The whole tree, parents before children, the root first. `create_namespaces`: those of leaves
    that do not exist are created before.
    """

    nodes: list[TreeNodeOrder]
    create_namespaces: bool = False


class TreeCellChange(Json, frozen=True):
    """`cell`: `name`, `namespaces`, a bound such as `min.cpu`, or an attribute such as
    `attributes.preempt-policy`. Texts are "" for nothing.
    """

    cell: str
    before: str
    after: str


class TreeNodeChange(Json, frozen=True):
    """`change`: `added`, `removed` or `changed`."""

    name: str
    change: str
    cells: list[TreeCellChange]


class GroupRename(Json, frozen=True):
    """A user group that follows its leaf to another name."""

    group: str
    before: str
    after: str


class QuotaTreePreview(Json, frozen=True):
    """What saving a tree does. Nothing is written.

    `fields`: refused cells; while there are some, the rest is empty. `nodes`: what differs from the
    stored tree. `what_if`: pods and leaves, by the controller's plan. `over_max`: nodes that then
    use more than their max, where nothing is admitted. `raised`: leaves with a larger min.
    `governed`, `released`: namespaces that come under quota or leave it; `unknown_namespaces` do
    not exist. `groups`: user groups whose leaf is renamed.
    """

    valid: bool
    fields: list[FieldFault]
    effects: list[Effect]
    nodes: list[TreeNodeChange] = []
    what_if: QuotaEffects | None = None
    over_max: list[str] = []
    raised: list[str] = []
    governed: list[str] = []
    released: list[str] = []
    unknown_namespaces: list[str] = []
    groups: list[GroupRename] = []


class QuotaTreeWritten(Json, frozen=True):
    """The tree was written. `tree_version`: its new version."""

    tree_version: str


class QuotaTreeVersion(Json, frozen=True):
    """A tree as it was once. `actor`: "" = another client than the console wrote it. `yaml`: its
    `spec`; `nodes`: the same, as a write takes it.
    """

    id: int
    at: str
    actor: str
    summary: str
    yaml: str
    nodes: list[TreeNodeOrder]


class QuotaTreeVersions(Json, frozen=True):
    """The newest first, at most 20."""

    items: list[QuotaTreeVersion]


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
