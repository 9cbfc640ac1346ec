"""The tables of `kubectl inspect cgpu` (docs/spec/gpu-sharing.md#inspect): a line per node, or a
block per node with a line per pod.

The rows of dashes have the reference's length: bytes of the first row (of all pod rows of the first
block) before its columns are aligned, plus a constant. No line ends with blanks, unlike the
reference's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from fairlead.model.inspection import InspectedNode
from fairlead.model.resources import MemoryUnit
from fairlead.rules.holding.units import GIB, MIB, MIB_PER_UNIT
from fairlead.rules.sharing.isolation import isolation_text
from fairlead.wire.text.tabwriter import align, render_rows

_SUMMARY_DASHES: Final = 20
_DETAIL_DASHES: Final = 10
_NOWHERE: Final = -1
"""In place of the index of an unknown card."""
Row = list[str]


def summary(nodes: Sequence[InspectedNode], *, is_wide: bool = False) -> str:
    """One line per node, in one unit."""
    unit = table_unit(nodes)
    indexes = gpu_columns([_indexes(node) for node in nodes])
    has_pending = any(node.pending for node in nodes)
    header = ["NAME", "IPADDRESS", *(f"GPU{index}(Allocated/Total)" for index in indexes)]
    header += (
        ["PENDING(Allocated)"] * has_pending
        + [f"GPU Memory({unit})"]
        + ["ISOLATION", "MODE", "UNHEALTHY"] * is_wide
    )
    rows = [
        _summary_row(node, unit, indexes, has_pending=has_pending, is_wide=is_wide)
        for node in nodes
    ]
    first = "\t".join(rows[0] if rows else header) + "\n"
    dashes = "-" * (len(first.encode()) + _SUMMARY_DASHES)
    return (
        f"{trimmed(render_rows([header, *rows]))}{dashes}\nAllocated/Total GPU Memory In "
        f"Cluster:\n{_cluster(nodes, unit)}\n"
    )


def details(nodes: Sequence[InspectedNode], *, is_wide: bool = False) -> str:
    """One block per node; all rows of dashes have the length of the first block's."""
    unit = table_unit(nodes)
    pods = [_pod_rows(node, unit) for node in nodes]
    dashes = "-" * (
        sum(len(_terminated(row).encode()) for row in (pods[0] if pods else [])) + _DETAIL_DASHES
    )
    blocks = [
        _block(node, unit, rows, is_wide=is_wide) + f"{dashes}\n"
        for node, rows in zip(nodes, pods, strict=True)
    ]
    return "\n".join(blocks) + (
        f"\nAllocated/Total GPU Memory In Cluster:  {_cluster(nodes, unit)}\n"
    )


def table_unit(nodes: Iterable[InspectedNode]) -> MemoryUnit:
    """MiB if all nodes count in MiB, else GiB; amounts of the others are rounded down to it."""
    return MIB if {node.unit for node in nodes} == {MIB} else GIB


def trimmed(text: str) -> str:
    """The lines without blanks at their ends."""
    return "".join(line.rstrip(" ") + "\n" for line in text.splitlines())


def gpu_columns(indexes: Sequence[Collection[int]]) -> list[int]:
    """From 0 up to the largest count of GPUs, and any index beyond that a node has (of a node that
    lost a card one is missing).

    >>> gpu_columns([[0, 1], [0, 2]]), gpu_columns([])
    ([0, 1, 2], [])
    """
    counted = set(range(max((len(each) for each in indexes), default=0)))
    return sorted(counted.union(*indexes))


def percent_floor(part: int, total: int) -> int:
    """
    >>> percent_floor(8, 15), percent_floor(12, 14), percent_floor(0, 0)
    (53, 85, 0)
    """
    return 100 * part // total if total > 0 else 0


def _summary_row(
    node: InspectedNode,
    unit: MemoryUnit,
    indexes: Iterable[int],
    *,
    has_pending: bool,
    is_wide: bool,
) -> Row:
    cells = [
        node.name,
        node.address or "unknown",
        *(_card_cell(node, unit, index) for index in indexes),
    ]
    if has_pending:
        cells.append(str(_shown(node, node.pending_units, unit)) if node.pending else "")
    cells.append(f"{_shown(node, node.used, unit)}/{_shown(node, node.total, unit)}")
    return cells + [isolation_text(node.isolation), node.mode, str(node.unhealthy)] * is_wide


def _card_cell(node: InspectedNode, unit: MemoryUnit, index: int) -> str:
    cards = [card for card in node.cards if card.index == index]
    used, total = sum(card.used for card in cards), sum(card.total for card in cards)
    return f"{_shown(node, used, unit)}/{_shown(node, total, unit)}"


def _block(node: InspectedNode, unit: MemoryUnit, pods: Sequence[Row], *, is_wide: bool) -> str:
    head = [("NAME:", node.name), ("IPADDRESS:", node.address or "unknown")]
    if is_wide:
        head += [
            ("ISOLATION:", isolation_text(node.isolation)),
            ("MODE:", node.mode),
            ("UNHEALTHY:", str(node.unhealthy)),
        ]
    header = ["NAME", "NAMESPACE", *(f"GPU{index}(Allocated)" for index in _indexes(node))] + [
        "Pending(Allocated)"
    ] * bool(node.pending)
    used, total = _shown(node, node.used, unit), _shown(node, node.total, unit)
    sums = [["Allocated :", f"{used} ({percent_floor(used, total)}%)"], ["Total :", str(total)]]
    table = "".join(_terminated(row) for row in [header, *pods, *sums])
    return trimmed(align("".join(f"{key}\t{value}\n" for key, value in head) + "\n" + table))


def _pod_rows(node: InspectedNode, unit: MemoryUnit) -> list[Row]:
    """A pod's units on each card, then those on none that is known."""
    seats = [(card.index, pod) for card in node.cards for pod in card.pods] + [
        (_NOWHERE, pod) for pod in node.pending
    ]
    held: dict[tuple[str, str, str], Counter[int]] = {}
    for place, pod in seats:
        held.setdefault((pod.namespace, pod.name, pod.uid), Counter())[place] += pod.used
    columns = [*_indexes(node), *([_NOWHERE] if node.pending else [])]
    return [
        [name, namespace, *(str(_shown(node, units[place], unit)) for place in columns)]
        for (namespace, name, _), units in sorted(held.items())
    ]


def _indexes(node: InspectedNode) -> list[int]:
    return sorted({card.index for card in node.cards})


def _cluster(nodes: Iterable[InspectedNode], unit: MemoryUnit) -> str:
    """The sum of what the lines show."""
    shown = [(_shown(node, node.used, unit), _shown(node, node.total, unit)) for node in nodes]
    used, total = sum(used for used, _ in shown), sum(total for _, total in shown)
    return f"{used}/{total} ({percent_floor(used, total)}%)"


def _shown(node: InspectedNode, units: int, unit: MemoryUnit) -> int:
    return units // (MIB_PER_UNIT[unit] // MIB_PER_UNIT[node.unit])


def _terminated(row: Iterable[str]) -> str:
    """A line of cells that all belong to columns, the last too."""
    return "".join(f"{cell}\t" for cell in row) + "\n"
