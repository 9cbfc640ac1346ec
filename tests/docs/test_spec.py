"""The specification agrees with what is shipped, and every reference from a source file leads to a
heading.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import yaml
from tests.docs.anchors import NOT_OWN, ROOT, anchors

SPEC = ROOT / "docs" / "spec"
RULES = ROOT / "deploy" / "prometheus" / "fairlead.rules.yaml"
SAMPLES = [
    path
    for folder in ("jobs", "top_node")
    for path in sorted((ROOT / "tests" / "golden" / folder).glob("S*.txt"))
]
REFERENCE = re.compile(r"docs/spec/([a-z-]+\.md)(?:#([\w-]+))?")
SCENARIOS = sorted((ROOT / "tests" / "scenarios" / "quota").glob("*.toml"))
SOURCES = {".py", ".ts", ".tsx", ".c", ".h", ".yaml", ".toml", ".css", ".sh"}


def references() -> Iterator[tuple[Path, str, str]]:
    """The file, the page and the anchor of each reference; "" = the whole page."""
    for folder in ("src", "tests", "tools", "bench", "web", "deploy"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES and not NOT_OWN & set(path.relative_to(ROOT).parts):
                for page, anchor in REFERENCE.findall(path.read_text(encoding="utf-8")):
                    yield path, page, anchor


def test_every_reference_to_the_specification_has_its_heading() -> None:
    headings = {page.name: anchors(page) for page in SPEC.glob("*.md")}
    lost = [
        f"{path.relative_to(ROOT)}: {page}#{anchor}"
        for path, page, anchor in references()
        if page not in headings or (anchor and anchor not in headings[page])
    ]
    assert not lost, "\n".join(lost)


def test_every_quota_scenario_names_its_section() -> None:
    """`section` is a reference to one heading; the test above checks that the heading exists."""
    named = {
        path.name: tomllib.loads(path.read_text(encoding="utf-8"))["section"] for path in SCENARIOS
    }
    assert len(named) > 20
    assert {
        name: section
        for name, section in named.items()
        if not re.fullmatch(r"docs/spec/quota\.md#[\w-]+", section)
    } == {}


def test_the_samples_are_what_the_golden_files_have() -> None:
    text = (SPEC / "arena-cli-samples.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    golden = {path.name: path.read_text(encoding="utf-8") for path in SAMPLES}
    assert sorted(shown) == sorted(golden.values())


def test_the_alerts_are_those_of_the_rules() -> None:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    shipped = {
        each["alert"].removeprefix("Fairlead"): (
            _one_line(each["expr"]),
            each.get("for", "0"),
            each["labels"]["severity"],
        )
        for each in rules
    }
    text = (
        (SPEC / "telemetry.md")
        .read_text(encoding="utf-8")
        .split("| alert (`Fairlead…`)", 1)[1]
        .split("\n\n", 1)[0]
    )
    rows = re.findall(r"^\| (\w+) \| `(.*)` \| (\S+) \| (\w+) \|$", text, re.MULTILINE)
    written = {
        name: (_one_line(expression.replace("\\|", "|")), duration, severity)
        for name, expression, duration, severity in rows
    }
    assert written == shipped


def _one_line(expression: str) -> str:
    return " ".join(expression.split())
