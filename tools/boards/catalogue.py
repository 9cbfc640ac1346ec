"""All boards, in the order in which links to them stand, and the file of each."""

from __future__ import annotations

from boards import cluster, devices, gpu_app, gpu_node, jobs, nodes, quota
from boards.shape import Board

BOARDS: tuple[Board, ...] = (
    cluster.BOARD,
    nodes.BOARD,
    jobs.BOARD,
    quota.BOARD,
    gpu_app.BOARD,
    gpu_node.BOARD,
    devices.BOARD,
)


def file_name(board: Board) -> str:
    return f"{board.uid}.json"
