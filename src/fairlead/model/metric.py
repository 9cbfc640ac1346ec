"""Metrics as values: families in columns, so that half a million samples stay a few lists.

Families about the same things (all `node_name` ones) share one `keys` list *by identity*, and the renderer
writes its label text once. An unknown value is None in `values` and prints nothing, never 0 or -1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

Key = tuple[str, ...]
"""Label values of one sample, in the order of its family's `labels`."""

NO_LABELS: Sequence[Key] = ((),)
"""The `keys` of a family with one sample and no labels."""


class MetricName(Struct, frozen=True, gc=False):
    """What stays the same of a family: what docs and boards are checked against.

    `type`: gauge, counter, untyped.
    """

    name: str
    type: str
    labels: tuple[str, ...]
    help: str


class Family(Struct, frozen=True, gc=False):
    """One metric family.

    `omits_empty`: an empty label value leaves the label out (DCGM) instead of printing `x=""`.
    """

    metric: MetricName
    keys: Sequence[Key]
    values: Sequence[float | int | None]
    omits_empty: bool = False

    @property
    def name(self) -> str:
        return self.metric.name


class Sample(Struct, frozen=True, gc=False):
    """One line of a page that was read.

    `labels` is shared between samples that had the same text: never change it.
    """

    name: str
    labels: Mapping[str, str]
    value: float
