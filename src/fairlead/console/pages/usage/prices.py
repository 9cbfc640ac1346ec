"""The forms of prices and month reports (docs/spec/usage.md#prices)."""

from __future__ import annotations

from fairlead.console.pages.envelope import FieldFault, Json, ListAnswer, Sentence, Timestamp


class PriceRow(Json, frozen=True):
    """A price as it was entered. Money: decimal strings of the currency.

    `matcher`: labels that a node must have; {} = every node. `gpu_share_percent`: null = the
    default. `valid_from`: the beginning of a billing day. `in_force`: it counts now for some node
    of the last 90 days. `classes`: how many price classes of that time it matches. `ended`: from
    then on the matcher has no price.
    """

    id: int
    matcher: dict[str, str]
    currency: str
    node_hour: str
    list_node_hour: str | None
    gpu_share_percent: float | None
    valid_from: Timestamp
    entered_at: Timestamp
    entered_by: str
    note: str
    ended: bool
    in_force: bool
    classes: int


class PriceClassRow(Json, frozen=True):
    """Nodes of one price class in the last 90 days, and the price that counts now. `price`: its id,
    null = none.
    """

    labels: dict[str, str]
    gpus: float
    cores: float
    memory_mib: float
    node_hours: float
    price: int | None


class PriceList(ListAnswer, frozen=True):
    """`classes`: what can be matched. `zone`: of billing days."""

    currency: str
    zone: str
    classes: list[PriceClassRow]
    items: list[PriceRow]


class PriceOrder(Json, frozen=True, forbid_unknown_fields=True):
    """A new price, or with `ended` the end of a matcher's prices.

    `matcher`: labels of nodes, or `gpu-model`. `valid_from`: a date (the beginning of its billing
    day) or RFC 3339 with its zone.
    """

    matcher: dict[str, str]
    valid_from: str
    currency: str = ""
    node_hour: str = ""
    list_node_hour: str = ""
    gpu_share_percent: float | None = None
    note: str = ""
    ended: bool = False


class PriceWritten(Json, frozen=True):
    """`warnings`: what the administrator should check; the price is stored."""

    price: PriceRow
    warnings: list[Sentence]


class PricePreview(Json, frozen=True):
    """What would be stored. `fields`: why it is refused; `price`: null then."""

    valid: bool
    fields: list[FieldFault]
    warnings: list[Sentence]
    price: PriceRow | None
