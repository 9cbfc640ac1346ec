"""Draws docs/pictures/flow-{light,dark}.svg: how a pod, a sample and a binding go through Fairlead.

`LANES` and `SHARED` describe the picture; its colours are the console's (web/src/look/tokens.ts).
`make pictures` runs it, `tests/docs` compares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOKENS = ROOT / "web" / "src" / "look" / "tokens.ts"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif"
SHADES = ("light", "dark")

BOX, ARROW, EDGE, HEAD, LANE, GAP = 196, 34, 14, 34, 112, 14
WIDTH = 5 * BOX + 4 * ARROW
COLUMNS = tuple((index * (BOX + ARROW), BOX) for index in range(5))
"""Left edge and width of each column. A line of a box has room
for 22 characters, a title for 18.
"""
HEADS = ("what happens", "who reports it", "what Fairlead reads", "what follows", "what you get")


@dataclass(frozen=True)
class Box:
    """A title and lines below it, in one column.

    `lanes` is its first lane and how many lanes it spans.
    """

    column: int
    lanes: tuple[int, int]
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Lane:
    """One way through the columns, in the colour of a token."""

    number: str
    colour: str
    boxes: tuple[Box, ...]


LANES = (
    Lane(
        "1",
        "blue",
        (
            Box(0, (0, 1), "A pod changes", ("kubectl, arena submit,", "a controller, a kubelet")),
            Box(1, (0, 1), "API server", ("one line on a watch,", "read once for all")),
            Box(4, (0, 1), "Boards and arena", ("who holds every GPU,", "what waits, and why")),
        ),
    ),
    Lane(
        "2",
        "teal",
        (
            Box(0, (1, 1), "A GPU works", ("use, memory, heat,", "power, faults")),
            Box(1, (1, 1), "GPU exporter", ("Fairlead's or DCGM's,", "or by Prometheus")),
            Box(4, (1, 1), "Metrics", ("arena_*, fairlead_*", "for your Grafana")),
        ),
    ),
    Lane(
        "3",
        "amber",
        (
            Box(0, (2, 1), "A pod shares a GPU", ("aliyun.com/gpu-mem: 4", "is 4 GiB of one card")),
            Box(1, (2, 1), "kube-scheduler", ("filter, prioritize,", "bind")),
            Box(2, (2, 1), "Scheduler extender", ("the ledger of shared", "cards")),
            Box(4, (2, 1), "One binding", ("node and card in one", "call; comes back as ①")),
        ),
    ),
)
SHARED = (
    Box(
        2,
        (0, 2),
        "Cluster snapshot",
        (
            "the whole cluster as",
            "one immutable value:",
            "nodes, pods, jobs,",
            "GPUs, quota.",
            "A file of it replays.",
        ),
    ),
    Box(
        3,
        (0, 3),
        "Rules",
        (
            "pure functions, and one",
            "account of who holds",
            "what of which card.",
            "",
            "Boards, commands,",
            "metrics and scheduler",
            "ask the same rule:",
            "they cannot disagree.",
        ),
    ),
)


def colours(shade: str) -> dict[str, str]:
    """The tokens of a shade: name -> `#rrggbb`. LookupError when the file has another form."""
    block = re.search(
        (
            rf"^const {shade}: Tokens = "
            rf"{{\n(.*?)^}};"
        ),
        TOKENS.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    if block is None:
        raise LookupError(f"no `{shade}` in {TOKENS}")
    return dict(re.findall(r'^  (\w+): "(#\w{6})",$', block[1], re.MULTILINE))


def flow_svg(shade: str) -> str:
    """The whole picture as SVG."""
    of = colours(shade)
    width, height = WIDTH + 2 * EDGE, HEAD + len(LANES) * LANE + (len(LANES) - 1) * GAP + EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-EDGE} 0 {width} {height}" '
        f'width="{width}" height="{height}" '
        f'font-family="{FONT}" role="img">\n',
        "<title>How a pod, a sample and a binding go through Fairlead</title>\n",
        f'<rect x="{-EDGE}" width="{width}" height="{height}" fill="{of["page"]}"/>\n',
    ]
    for (left, width), head in zip(COLUMNS, HEADS, strict=True):
        parts.append(_text(left + width / 2, 20, head, of["text3"], 12, anchor="middle"))
    for box in SHARED:
        parts.append(
            _box(box, of["idleFill"] if box.column == 2 else of["surface"], of["lineStrong"], of)
        )
    for row, lane in enumerate(LANES):
        colour = of[lane.colour]
        parts.extend(_box(box, of["surface"], of["line"], of, edge=colour) for box in lane.boxes)
        parts.extend(_arrow(row, column, colour) for column in range(len(COLUMNS) - 1))
        parts.append(_number(lane.number, row, colour, of["surface"]))
    return "".join([*parts, "</svg>\n"])


def _top(row: int) -> int:
    return HEAD + row * (LANE + GAP)


def _box(box: Box, fill: str, line: str, of: dict[str, str], edge: str = "") -> str:
    left, width = COLUMNS[box.column]
    first, count = box.lanes
    top, height = _top(first), count * LANE + (count - 1) * GAP
    drawn = (
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="6" fill="{fill}" '
        f'stroke="{line}"/>\n'
    )
    if edge:
        drawn += f'<rect x="{left}" y="{top}" width="{width}" height="4" rx="2" fill="{edge}"/>\n'
    text_height = 18 + 19 * len(box.lines)
    at = top + (height - text_height) / 2 + 15
    drawn += _text(left + 16, at, box.title, of["text"], 15, weight=600)
    for index, line_text in enumerate(box.lines, start=1):
        if line_text:
            drawn += _text(left + 16, at + 4 + 19 * index, line_text, of["text2"], 13)
    return drawn


def _arrow(row: int, column: int, colour: str) -> str:
    left, width = COLUMNS[column]
    begin, end, y = left + width + 4, COLUMNS[column + 1][0] - 4, _top(row) + LANE / 2
    return (
        f'<path d="M{begin} {y}H{end - 6}" stroke="{colour}" stroke-width="2" fill="none"/>'
        f'<path d="M{end} {y}l-9 -5v10z" fill="{colour}"/>\n'
    )


def _number(number: str, row: int, colour: str, ink: str) -> str:
    left, width = COLUMNS[0]
    x, y = left + width - 18, _top(row) + LANE - 20
    return (f'<circle cx="{x}" cy="{y}" r="9" fill="{colour}"/>') + _text(
        x, y + 4, number, ink, 12, weight=600, anchor="middle"
    )


def _text(
    x: float,
    y: float,
    text: str,
    colour: str,
    size: int,
    *,
    weight: int = 400,
    anchor: str = "start",
) -> str:
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return (
        f'<text {place} font-size="{size}" font-weight="{weight}" '
        f'fill="{colour}">{escape(text)}</text>\n'
    )


def flow_file(shade: str) -> Path:
    return ROOT / "docs" / "pictures" / f"flow-{shade}.svg"


if __name__ == "__main__":
    for each in SHADES:
        flow_file(each).write_text(flow_svg(each), encoding="utf-8")
