"""Whether one more pod may run here under its `topologySpreadConstraints`. Pure.

A domain is a value of the topology key among nodes that suit the pod by labels. Taints count only
with `nodeTaintsPolicy`, which is not simulated, as is `minDomains`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from fairlead_sim.schema.selector import selects

Object = dict[str, Any]
Labels = Mapping[str, str]

_UNEVEN = "node(s) didn't match pod topology spread constraints"
_HARD = "DoNotSchedule"


class Spread(Struct, frozen=True):
    """One constraint with the existing pods by domain; `own` is 1 if the pod itself counts."""

    key: str
    max_skew: int
    counts: Mapping[str, int]
    own: int

    def skew(self, labels: Labels) -> int:
        """How many more pods than the emptiest domain the node's would have."""
        return (
            self.counts.get(labels[self.key], 0) + self.own - min(self.counts.values(), default=0)
        )


def constraints(spec: Object, *, is_hard: bool) -> list[Object]:
    found = spec.get("topologySpreadConstraints") or ()
    return [item for item in found if (item.get("whenUnsatisfiable", _HARD) == _HARD) is is_hard]


def spreads(
    pod: Object, nodes: Iterable[Labels], placed: Sequence[tuple[Object, Labels]], *, is_hard: bool
) -> list[Spread]:
    """The pod's constraints over the nodes that suit it and the pods that stand on them."""
    wanted = constraints(pod["spec"], is_hard=is_hard)
    if not wanted:
        return []
    keys = [item["topologyKey"] for item in wanted]
    domains = [labels for labels in nodes if all(key in labels for key in keys)]
    return [_spread(item, pod, domains, placed, keys) for item in wanted]


def _spread(
    item: Object,
    pod: Object,
    domains: list[Labels],
    placed: Sequence[tuple[Object, Labels]],
    keys: list[str],
) -> Spread:
    key, chooses = item["topologyKey"], _chooser(item, pod)
    counts = Counter({labels[key]: 0 for labels in domains})
    for other, labels in placed:
        if key in counts or labels.get(key) in counts:
            is_counted = (
                all(name in labels for name in keys)
                and "deletionTimestamp" not in other["metadata"]
            )
            if (
                is_counted
                and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and chooses(other)
            ):
                counts[labels[key]] += 1
    return Spread(key, int(item["maxSkew"]), counts, int(chooses(pod)))


def _chooser(item: Object, pod: Object) -> Callable[[Object], bool]:
    """The selector, narrowed to pods that are the same as this one in `matchLabelKeys`."""
    own = pod["metadata"].get("labels") or {}
    same = {key: own[key] for key in item.get("matchLabelKeys") or () if key in own}
    by_selector, by_keys = (
        selects(item.get("labelSelector")),
        selects({"matchLabels": same}) if same else None,
    )
    return lambda other: by_selector(other) and (by_keys is None or by_keys(other))


def refusal(found: Iterable[Spread], labels: Labels) -> tuple[str, bool]:
    """Why a node is out, and whether that is final; "" when it is not."""
    for spread in found:
        if spread.key not in labels:
            return f"{_UNEVEN} (missing required label)", True
        if spread.skew(labels) > spread.max_skew:
            return _UNEVEN, False
    return "", False
