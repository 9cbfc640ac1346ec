"""What tables, boards and the map show of a snapshot, as far as the past has it
(docs/spec/usage.md#past).

What each table shows is compared, not the snapshot. The columns in `TELEMETRY` are not known of the
past; they are null or 0 there.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.cli.jobs.job_search import report_of
from fairlead.cli.jobs.job_tables import list_table
from fairlead.cli.nodes import why
from fairlead.cli.nodes.node_details import node_details
from fairlead.cli.nodes.node_table import node_table
from fairlead.cli.snapshot.reader import SnapshotReader
from fairlead.console.boards.restricted.board import SharedBoard
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.reports.job import newest_first
from fairlead.rules.reports.node import report_nodes

TELEMETRY: Final = frozenset(
    (
        *("gpuUtilPercent", "gpuMemoryUsedMiB", "gpuMemoryUsedOfMiB", "gpusReporting"),
        *("utilPercent", "memoryUsedMiB", "temperatureC", "powerW", "idleSeconds", "idleGpus"),
    )
)
"""Keys of rows whose values come from telemetry."""
CELL_TELEMETRY: Final = (1, 2, 3, 4)
"""Places of a cell of the map: utilization, used memory, temperature, idle seconds."""


def tables(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """All that is compared, by name."""
    whole = SnapshotReader(snapshot, "a snapshot")
    nodes = report_nodes(whole.read_nodes())
    board = SharedBoard(snapshot, snapshot.taken_at)
    waiting = [pod for pod in snapshot.pods if not pod.node and not pod.is_finished]
    return {
        "top node": node_table(nodes, has_footer=True, requested=None),
        "top node -d": node_details([each for each in nodes if each.topology is None]),
        "list": list_table(newest_first(report_of(snapshot)), has_namespace=True),
        "why": [why.why_text(snapshot, pod) for pod in waiting],
        "nodes": _plain([entry.row for entry in board.nodes.entries]),
        "jobs": _plain([entry.row for entry in board.jobs.entries]),
        "holders": _plain([entry.row for entry in board.holders.entries]),
        "quota": _plain([entry.row for entry in board.quota.entries]),
        "waiting": _plain([entry.row for entry in board.waiting.entries]),
        "map": _map(board),
        "pools": _plain(board.overview.pools),
        "counts": _plain([board.overview.gpus, board.overview.gpu_nodes, board.overview.jobs]),
    }


def _plain(rows: Any) -> Any:
    return _without(msgspec.to_builtins(rows))


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without(each) for key, each in value.items() if key not in TELEMETRY}
    return [_without(each) for each in value] if isinstance(value, list) else value


def _map(board: SharedBoard) -> Any:
    found = board.gpu_map
    cells = [
        [
            [value for place, value in enumerate(cell) if place not in CELL_TELEMETRY]
            for cell in each
        ]
        for each in (node.gpus for node in found.nodes)
    ]
    names = [(node.name, node.model, node.mode, node.status, node.indexes) for node in found.nodes]
    return found.teams, found.models, found.modes, found.statuses, names, cells
