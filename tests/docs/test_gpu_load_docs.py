"""The page of the load generator has the manifests of document 002, and the fields and flags of the
program.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from fairlead.cli.frame.parser import make_parser
from fairlead.cli.servers import gpu_load
from fairlead.model.devices.gpu_load import TESTED, LoadTest
from fairlead.rules.devices.load_check import FIELD_NAMES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "gpu-load.md").read_text(encoding="utf-8")
PODS: list[dict[str, Any]] = [
    yaml.safe_load(block) for block in re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL)
]
DOCUMENT_002 = yaml.safe_load(
    (ROOT / "examples" / "dcgmproftester.yaml").read_text(encoding="utf-8")
)


def test_document_002s_pod_differs_in_its_image_alone() -> None:
    own = PODS[0]
    own["spec"]["containers"][0]["image"] = DOCUMENT_002["spec"]["containers"][0]["image"]
    assert own == DOCUMENT_002


def test_arguments_of_the_manifests_are_taken() -> None:
    for pod in PODS:
        args = make_parser(gpu_load, "dcgmproftester12").parse(pod["spec"]["containers"][0]["args"])
        assert (args.fieldId.strip(), args.duration, args.no_dcgm_validation) == (
            "1004",
            120.0,
            True,
        )


def test_every_field_is_on_the_page_with_what_it_reaches() -> None:
    rows = {
        match[1]: match[0]
        for match in re.finditer(
            (
                r"^\| ([\d, ]+) "
                r"\| .*$"
            ),
            PAGE.partition("\n## On a GPU\n")[0],
            re.MULTILINE,
        )
    }
    reported = {
        int(field): row
        for fields, row in rows.items()
        for field in re.findall(r"\d{4}", fields)
        if "`" in row
    }
    assert reported.keys() == TESTED == FIELD_NAMES.keys()
    for field, row in reported.items():
        assert FIELD_NAMES[field].removeprefix("DCGM_FI_PROF_").rpartition("PIPE_")[2] in row
        assert f"{LoadTest(field, 30.0).ratio(30.0):g}" in row
