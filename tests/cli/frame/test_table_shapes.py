"""Every table with no, one and many rows, with names in Latin letters and in Chinese: the columns
follow docs/spec/arena-cli.md#tables.

The oracle knows the rule but not the tables: below each heading a cell begins in every row, counted
in code points; the longest cell of a column ends two columns before the next; the last column is
not padded. Samples S1 to S17 are compared byte for byte elsewhere:

| samples | test |
|---|---|
| S1 to S9 | `test_top_node_samples` |
| S10 to S14, and the legacy layout of jobs | `test_job_samples` |
| S15 to S17 | `test_top_node_legacy` |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from tests.cli.api_objects import node, pod, reading, snapshot_of, topology_map
from tests.cli.command import run_command
from tests.cli.job_objects import cluster, job, job_pod

from fairlead.errors import UserError
from fairlead.model.snapshot import ClusterSnapshot

MANY = 23
LATIN, CHINESE = "a-name", "分布式训练"
Build = Callable[[int, str], ClusterSnapshot]
"""Makes a snapshot from the number of rows and the stem of their names."""


def names(count: int, stem: str) -> list[str]:
    """Names of different lengths."""
    return [f"{stem * (1 + number % 3)}-{number}" for number in range(count)]


def jobs(count: int, stem: str) -> ClusterSnapshot:
    made = [
        job("MPIJob", name, {"Launcher": (1, 0), "Worker": (2, 4)}, created=-number)
        for number, name in enumerate(names(count, stem))
    ]
    return cluster(
        made,
        [
            job_pod(each, each["metadata"]["name"] + "-launcher", "launcher", on="n", ip="10.0.0.1")
            for each in made
        ],
        after=90,
    )


def instances(count: int, stem: str) -> ClusterSnapshot:
    """One job with `count` workers. The GPU of every other worker has readings; the others have
    none.
    """
    one = job("MPIJob", "bert", {"Launcher": (1, 0), "Worker": (count, 1)})
    workers = [
        job_pod(one, name, "worker", gpus=1, on="n1", ip="10.0.0.1", index=str(i))
        for i, name in enumerate(names(count, stem))
    ]
    reported = [
        reading("n1", i, 80.0, 4.0 * i, 7.0 * i, [("default", name)])
        for i, name in enumerate(names(count, stem))
        if i % 2
    ]
    return cluster([one], workers, after=90, readings=reported)


def nodes(capacity: dict[str, str]) -> Build:
    def build(count: int, stem: str) -> ClusterSnapshot:
        return snapshot_of(
            [
                node(name, f"10.0.{number}.1", capacity)
                for number, name in enumerate(names(count, stem))
            ]
        )

    return build


def mixed(count: int, stem: str) -> ClusterSnapshot:
    kinds: list[dict[str, str]] = [
        {},
        {"nvidia.com/gpu": "8"},
        {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"},
    ]
    return snapshot_of(
        [
            node(name, "10.0.0.1", kinds[number % 3])
            for number, name in enumerate(names(count, stem))
        ]
    )


def holders(capacity: dict[str, str], limits: dict[str, str], **reported: str) -> Build:
    """One node with `count` pods."""

    def build(count: int, stem: str) -> ClusterSnapshot:
        on = [pod(name, "gpu-1", limits, annotations=reported) for name in names(count, stem)]
        return snapshot_of([node("gpu-1", "10.0.0.1", capacity)], on)

    return build


def measured(count: int, stem: str) -> ClusterSnapshot:
    """One node with `count` cards; every other one is lost and has no values."""
    reported = [
        reading(
            "gpu-1",
            index,
            80.0 if index % 2 else None,
            None,
            50.0 if index % 2 else None,
            [("default", stem)],
        )
        for index in range(count)
    ]
    return snapshot_of(
        [node("gpu-1", "10.0.0.1", {"nvidia.com/gpu": "64"})],
        [pod(stem, "gpu-1", {"nvidia.com/gpu": "1"})],
        readings=reported,
    )


def matrices(count: int, stem: str) -> ClusterSnapshot:
    health = {str(index): "Healthy" for index in range(count)}
    topology = topology_map(
        health, [["NV2"] * count] * count, [[10.0**index for index in range(count)]] * count
    )
    labels = {"ack.node.gpu.schedule": "topology"}
    return snapshot_of(
        [node(stem, "10.0.0.1", {"aliyun.com/gpu": str(count)}, labels=labels)],
        [],
        {stem: topology},
    )


SHARE, EXCLUSIVE = (
    {"aliyun.com/gpu-mem": "300", "aliyun.com/gpu-count": "2"},
    {"nvidia.com/gpu": "80"},
)
GRANT = {"scheduler.framework.gpushare.allocation": '{"0":{"0":6}}'}
TABLES: list[tuple[str, str, Build]] = [
    ("list", "NAME  STATUS  TRAINER  DURATION  GPU(Requested)  GPU(Allocated)  NODE", jobs),
    (
        "list -A",
        "NAMESPACE  NAME  STATUS  TRAINER  DURATION  GPU(Requested)  GPU(Allocated)  NODE",
        jobs,
    ),
    ("list -o wide", "NAME  STATUS  TRAINER  DURATION  GPU(Requested)  GPU(Allocated)  NODE", jobs),
    ("list --legacy", "NAME  STATUS  TRAINER  AGE  NODE", jobs),
    ("top job", "NAME  STATUS  TRAINER  AGE  GPU(Requested)  GPU(Allocated)  NODE", jobs),
    (
        "top job -A",
        "NAMESPACE  NAME  STATUS  TRAINER  AGE  GPU(Requested)  GPU(Allocated)  NODE",
        jobs,
    ),
    (
        "top job --resources",
        (
            "NAME  STATUS  TRAINER  AGE  GPU(Requested)  GPU(Allocated)  NODE  "
            "CPU(Requested/Total)  MEMORY(Requested/Total)"
        ),
        jobs,
    ),
    ("top job --legacy", "NAME  GPU(Requests)  GPU(Allocated)  STATUS  TRAINER  AGE  NODE", jobs),
    ("get bert", "NAME  STATUS  AGE  IS_CHIEF  GPU(Requested)  NODE", instances),
    ("get bert --legacy", "NAME  STATUS  TRAINER  AGE  INSTANCE  NODE", instances),
    (
        "top job bert",
        (
            "NAME  STATUS  GPU(Request)  NODE  GPU(DeviceIndex)  GPU(DutyCycle)  "
            "GPU_MEMORY(Used/Total)"
        ),
        instances,
    ),
    ("top node", "NAME  IPADDRESS  ROLE  STATUS  GPU(Total)  GPU(Allocated)", nodes(EXCLUSIVE)),
    ("top node", "NAME  IPADDRESS  ROLE  STATUS  GPU(Total)  GPU(Allocated)", nodes({})),
    (
        "top node",
        (
            "NAME  IPADDRESS  ROLE  STATUS  GPUs(Allocated/Total)  GPU_MEMORY(Allocated/Total)  "
            "GPU_CORE(Allocated/Total)"
        ),
        nodes(SHARE),
    ),
    (
        "top node --legacy",
        "NAME  IPADDRESS  ROLE  STATUS  GPU(Total)  GPU(Allocated)",
        nodes(EXCLUSIVE),
    ),
    ("top node -s", "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)", nodes(SHARE)),
    (
        "top node -d",
        "NAMESPACE  NAME  STATUS  GPU(Requested)",
        holders(EXCLUSIVE, {"nvidia.com/gpu": "1"}),
    ),
    (
        "top node -d",
        "NAMESPACE  NAME  GPU_MEM(Requested)  GPU_MEM(Allocated)",
        holders(SHARE, {"aliyun.com/gpu-mem": "6"}, **GRANT),
    ),
    (
        "top node -s -d",
        "NAME  NAMESPACE  GPU0(Allocated)  GPU1(Allocated)",
        holders(SHARE, {"aliyun.com/gpu-mem": "6"}, **GRANT),
    ),
    (
        "top node --legacy -d",
        "NAMESPACE  NAME  GPU REQUESTS",
        holders(EXCLUSIVE, {"nvidia.com/gpu": "1"}),
    ),
    (
        "top node -d --metric",
        "INDEX  MEMORY(Total)  MEMORY(Allocated)  MEMORY(Used)  DUTY_CYCLE",
        measured,
    ),
    ("top node -d", "INDEX  STATUS  HEALTHY", matrices),
]


def table_of(printed: str, heading: str) -> list[str]:
    """The lines of the table with this heading, up to the end of its columns: a line without
    columns, or another block.
    """
    lines = printed.splitlines()
    (first,) = (number for number, line in enumerate(lines) if _heads(heading).fullmatch(line))
    indent = _indent(lines[first])
    end = next(
        (
            n
            for n in range(first + 1, len(lines))
            if _indent(lines[n]) != indent or "  " not in lines[n].strip()
        ),
        len(lines),
    )
    return lines[first:end]


def _heads(heading: str) -> re.Pattern[str]:
    """A pattern for the line of headings; each heading is a group."""
    return re.compile(
        r"\s*"
        + (
            r" "
            r"{2,}"
        ).join(f"({re.escape(cell)})" for cell in heading.split("  "))
        + r"\s*"
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else -1


def misplaced(table: Sequence[str], heading: str) -> list[str]:
    """Lines whose cells are not where the rule requires them, and columns that are wider than
    necessary.
    """
    found = _heads(heading).fullmatch(table[0])
    assert found is not None, table[0]
    starts = [found.start(number) for number in range(1, len(heading.split("  ")) + 1)]
    wrong = [
        line
        for line in table
        for start in starts
        if line[start - 2 : start].strip() or line[start : start + 1].isspace()
    ]
    for left, right in pairwise(starts):
        longest = max(len(line[left:right].rstrip()) for line in table)
        if longest != right - left - 2:
            wrong.append(
                f"column `{table[0][left:right].strip()}` is {right - left} wide, its longest "
                f"cell {longest}"
            )
    return wrong


@pytest.mark.parametrize(
    ("line", "heading", "build"),
    TABLES,
    ids=[f"{line}: {heading}" for line, heading, _ in TABLES],
)
@pytest.mark.parametrize("stem", [LATIN, CHINESE], ids=["latin", "chinese"])
@pytest.mark.parametrize("count", [0, 1, MANY])
def test_columns_stand_below_their_headings(
    line: str, heading: str, build: Build, count: int, stem: str
) -> None:
    try:
        printed = run_command(line, build(count, stem)).out
    except UserError as error:
        assert count == 0 and "not found nodes" in error.what
        return
    if count == 0 and not re.search(
        r"^\s*" + re.escape(heading.partition("  ")[0]) + " ", printed, re.MULTILINE
    ):
        return  # blocks without rows are left out
    table = table_of(printed, heading)
    assert misplaced(table, heading) == [], printed
    rows = [row for row in table[1:] if not set(row) <= set(" -")]
    assert len([row for row in rows if stem in row or heading.startswith("INDEX")]) == count, (
        printed
    )


def test_the_oracle_sees_a_column_that_is_off() -> None:
    heading = "NAME  STATUS"
    assert misplaced(["NAME  STATUS", "分布式   RUNNING"], heading) == []
    assert misplaced(["NAME     STATUS", "分布式训练-0  RUNNING"], heading) == []
    assert misplaced(["NAME    STATUS", "分布式     RUNNING"], heading) != []
    assert misplaced(["NAME    STATUS", "分布式训  RUNNING"], heading) != []
