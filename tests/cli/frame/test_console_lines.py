"""The command lines that the console shows for objects are correct: each goes through a shell and
Fairlead's own parser.

`web/test/lines.json` contains an object and its lines. The tests of the page compare its code with
them; this test uses programs that share nothing with that code.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import pytest
from tests.programs import run_program

from fairlead.cli.frame.parser import VerbModule, global_options, make_parser, split_verb
from fairlead.kinds.parts.kind import label_of
from fairlead.kinds.registry import KINDS, kind_by_type, type_of_word
from fairlead.rules.quota.validate import TREE_NAME, TREE_NAMESPACE, validate
from fairlead.wire.quota.elastic_quota import WireQuotaTree, parse_quota_tree

LINES: Final = Path(__file__).parents[3] / "web" / "test" / "lines.json"
CASES: Final = [
    (each["of"], line) for each in json.loads(LINES.read_text()) for line in each["lines"]
]
PROGRAMS: Final = ("arena", "fairlead")
VERBS: Final = ("get", "describe", "logs")


def in_shell(line: str) -> list[str]:
    """The words that a POSIX shell makes of the line."""
    done = run_program(["/bin/sh", "-c", f"printf '%s\\0' {line}"], check=True)
    return done.stdout.split("\0")[:-1]


def parsed(line: str) -> tuple[str, argparse.Namespace, str]:
    program, *words = in_shell(line)
    verb, rest = split_verb(words, program)
    assert verb is not None, line
    module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
    args = make_parser(module, program).parse(rest)
    return verb.module, args, global_options(args).namespace


OWN: Final = [(of, line) for of, line in CASES if line.startswith(PROGRAMS)]
KUBECTL: Final = [(of, line) for of, line in CASES if line.startswith("kubectl")]


@pytest.mark.parametrize(("of", "line"), OWN, ids=[line for _, line in OWN])
def test_our_own_programs_understand_it(of: dict[str, Any], line: str) -> None:
    _, args, namespace = parsed(line)
    printed = vars(args)
    if of["kind"] in ("start", "first"):
        assert (printed["name"], namespace) == ("first", of.get("namespace", ""))
    elif of["kind"] == "release":
        assert (printed["type"], namespace) == (of["job"].split("/")[0], of["namespace"])
        assert of["owner"] in str(printed)
    elif of["kind"] == "table" and of["table"] == "nodes":
        assert printed["nodes"] == ["a", "b;c"]
    elif of["kind"] == "job":
        assert (printed["job"], type_of_word(printed["type"]), namespace) == (
            of["name"],
            of["type"],
            of["namespace"],
        )
    elif of["kind"] == "node":
        assert printed["nodes"] == [of["name"]]
    elif of["kind"] == "unit":
        assert of["unit"] in printed.values()
    elif of["kind"] == "holder" and line.startswith("fairlead"):
        assert f"{of['namespace']}/{of['name']}" in printed.values()
    elif of["kind"] == "holder":
        type_, name = of["job"].split("/")
        assert (printed["job"], type_of_word(printed["type"]), namespace) == (
            name,
            type_,
            of["namespace"],
        )


@pytest.mark.parametrize(("of", "line"), KUBECTL, ids=[line for _, line in KUBECTL])
def test_kubectl_gets_the_kind_the_namespace_and_the_name(of: dict[str, Any], line: str) -> None:
    words = in_shell(line)[1:]
    if of["kind"] in ("leaf", "tree", "warnings", "table"):
        return
    namespace = words[words.index("-n") + 1] if "-n" in words else None
    assert namespace == of.get("namespace")
    verb = next(at for at, word in enumerate(words) if word in VERBS and at in (0, 2))
    kind = kind_by_type(of.get("type", ""))
    resource = label_of(kind) if kind else {"node": "node", "holder": "pod"}[of["kind"]]
    reported = words[verb + 1 : verb + (2 if words[verb] == "logs" else 3)]
    assert reported == ([of["name"]] if words[verb] == "logs" else [resource, of["name"]])


def test_every_type_of_job_has_its_lines() -> None:
    assert {of["type"] for of, _ in CASES if of["kind"] == "job"} == {kind.TYPE for kind in KINDS}


COMMANDS: Final = Path(__file__).parents[3] / "web" / "src" / "commands" / "commands.ts"


def test_the_first_tree_of_an_empty_page_is_a_tree_that_is_taken() -> None:
    """A shell passes one JSON object to kubectl; no rule of Fairlead refuses it."""
    found = re.search(r"FIRST_TREE = `(.*)`;", COMMANDS.read_text(encoding="utf-8"))
    assert found is not None
    says, _, takes = found[1].partition(" | ")
    assert takes == "kubectl apply -f -"
    printed = subprocess.run(["sh", "-c", says], capture_output=True, text=True, check=True).stdout
    tree = parse_quota_tree(msgspec.json.decode(printed, type=WireQuotaTree))
    assert (tree.name, tree.namespace, json.loads(printed)["apiVersion"]) == (
        TREE_NAME,
        TREE_NAMESPACE,
        "scheduling.sigs.k8s.io/v1beta1",
    )
    assert tree.root is not None and [leaf.namespaces for leaf in tree.root.leaves()] == [
        ("team-a",),
        ("team-b",),
    ]
    assert validate(tree) == ()


def test_the_definition_of_the_tree_is_where_the_page_points() -> None:
    found = re.search(
        (
            r'QUOTA_DEFINITION = "kubectl apply --server-side '
            r'--force-conflicts -f (\S+)";'
        ),
        COMMANDS.read_text(encoding="utf-8"),
    )
    assert found is not None
    assert "kind: CustomResourceDefinition" in (COMMANDS.parents[3] / found[1]).read_text(
        encoding="utf-8"
    )
