"""Metrics as values: each family has its samples in columns.

So half a million samples are a few lists.

Families about the same objects (all with `node_name`) share one `keys` list by identity, so the
renderer writes its label text once. An unknown value is None in `values` and is not printed, never
0 or -1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

Key = tuple[str, ...]
"""Label values of one sample, in the order of its family's `labels`."""

NO_LABELS: Sequence[Key] = ((),)
"""The `keys` of a family with one sample and no labels."""


class MetricName(Struct, frozen=True, gc=False):
    """The constant part of a family, against which documents and boards are checked.

    `type`: gauge, counter, untyped.
    """

    name: str
    type: str
    labels: tuple[str, ...]
    help: str


class Family(Struct, frozen=True, gc=False):
    """One metric family.

    `omits_empty`: a label with an empty value is left out (as DCGM does) instead of printed as
    `x=""`.
    """

    metric: MetricName
    keys: Sequence[Key]
    values: Sequence[float | int | None]
    omits_empty: bool = False

    @property
    def name(self) -> str:
        return self.metric.name


class Sample(Struct, frozen=True, gc=False):
    """One line of a parsed page.

    `labels` is shared by samples with the same label text: do not change it.
    """

    name: str
    labels: Mapping[str, str]
    value: float
