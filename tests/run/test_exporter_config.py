"""`--config-file` beside flags and variables: it supplies what they leave out, and where they
override it, a message reports that.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead.cli.frame.parser import make_parser
from fairlead.cli.servers import gpu_exporter
from fairlead.run.node_exporter import read_config_file

CONFIG = (
    "version: 1\nmetrics: {fields: [{name: DCGM_FI_DEV_GPU_TEMP, prometheusType: gauge, help: "
    "t}]}\n"
)


@pytest.mark.parametrize(
    ("line", "env", "winner"),
    [
        ("", {}, ""),
        ("-m none", {}, ""),
        ("", {"DCGM_EXPORTER_CONFIGMAP_DATA": "none"}, ""),
        ("-m ns:name", {}, "--configmap-data"),
        ("", {"DCGM_EXPORTER_CONFIGMAP_DATA": "ns:name"}, "--configmap-data"),
        ("-f mine.csv -m none", {}, "--collectors"),
    ],
)
def test_counters_of_the_file_count_where_no_others_are_named(
    tmp_path: Path, line: str, env: dict[str, str], winner: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    args = make_parser(gpu_exporter, "fairlead").parse(shlex.split(f"--config-file={path} {line}"))
    gpu_exporter.fill_from_variables(args, env)
    printed = list[str]()
    asked: Any = SimpleNamespace(args=args, messages=SimpleNamespace(warn=printed.append))
    assert bool(read_config_file(asked).rows) is not bool(winner)
    assert [f"have no effect: `{winner}` is given" in each for each in printed] == [True] * bool(
        winner
    )
