"""Every sentence of the console's server has a translation in both languages; a sentence without a
code fails here.

Codes are read from the source. Where a code is composed, its parts are in `MADE`; a place that
composes codes and is not in `MADE` fails, too.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import pytest

from fairlead.console.boards import job_life
from fairlead.console.boards.health import AFFECTED_CONTENT, SETTINGS
from fairlead.console.http.answers import CODES_BY_STATUS
from fairlead.console.pages.health import STATES
from fairlead.model.installation import Parts
from fairlead.model.people.permission import ConsoleResource, ConsoleVerb, Denied
from fairlead.model.people.rows import UserRole
from fairlead.model.people.subject import Subject
from fairlead.model.quota.clauses import CLAUSES
from fairlead.model.quota.plan import Reason
from fairlead.model.quota.tree import ViolationCode
from fairlead.rules.people.may import may
from fairlead.rules.sharing.would_start import StartState

ROOT: Final = Path(__file__).parents[2]
CONSOLE: Final = ROOT / "src" / "fairlead" / "console"
CATALOGUES: Final = {name: ROOT / "web" / "src" / "i18n" / f"{name}.ts" for name in ("en", "zh-CN")}
ATTENTION: Final = (
    "node-silent",
    "node-not-ready",
    "gpu-broken-xid",
    "gpu-broken-no-reason",
    "gpu-withheld",
    "leaf-starved",
    "jobs-waiting",
    "pod-stuck",
    "pod-crashing",
    "pod-image",
    "pod-unschedulable",
    "gpu-idle",
)
WAITING: Final = ROOT / "src" / "fairlead" / "rules" / "jobs" / "waiting.py"


def own_waits() -> list[ast.Call]:
    """Calls in which Fairlead's own rules state why something waits."""
    nodes = ast.walk(ast.parse(WAITING.read_text(encoding="utf-8")))
    return [
        node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "Wait"
    ]


WAITS: Final = tuple(
    dict.fromkeys(
        f"wait-{call.args[2].value}"
        for call in own_waits()
        if len(call.args) > 2 and isinstance(call.args[2], ast.Constant)
    )
)
SHORTFALLS: Final = ("absent", "never", "full", "together")
MADE: Final = {
    ("nodes_rows.py", "code"): (
        "nodes",
        "nodes-unhealthy",
        "nodes-faulty",
        "nodes-unhealthy-faulty",
    ),
    ("jobs_rows.py", "f'why-{found.kind}'"): tuple(f"why-{kind}" for kind in SHORTFALLS),
    ("jobs_rows.py", "code"): (
        *("jobs", "jobs-waiting"),
        *(f"why-barred{why}" for why in ("", "-taints", "-cordoned", "-taints-cordoned")),
    ),
    ("jobs_rows.py", "f'why-share-{short.kind}'"): tuple(
        f"why-share-{kind}" for kind in ("none", "barred", "unshared", "memory", "other")
    ),
    ("jobs_rows.py", "f'wait-{wait.code}'"): WAITS,
    ("jobs_rows.py", "f'why-{found.kind}-leaf'"): tuple(f"why-{kind}-leaf" for kind in SHORTFALLS),
    ("attention.py", "f'attention-{code or kind}'"): tuple(
        f"attention-{kind}" for kind in ATTENTION
    ),
    ("board.py", "f'{sentence.code}-own'"): tuple(
        f"{kind}-none-own" for kind in ("jobs", "holders", "serving", "quota")
    ),
    ("waiting.py", "f'clause-{each.code}'"): tuple(f"clause-{code}" for code in CLAUSES),
    ("health.py", "f'health-affects-{name}'"): tuple(
        f"health-affects-{name}" for name in AFFECTED_CONTENT
    ),
    ("health.py", "f'health-set-{name}'"): tuple(f"health-set-{name}" for name in SETTINGS),
    ("health.py", "code"): ("health-clock-ahead", "health-clock-behind"),
    ("verdict.py", "f'submit-{state.value}'"): tuple(f"submit-{each}" for each in StartState),
    ("overview.py", "code"): (
        "cluster",
        "cluster-idle",
        "cluster-unhealthy",
        "cluster-idle-unhealthy",
    ),
}


@functools.cache
def all_calls() -> Mapping[str, list[tuple[Path, ast.Call]]]:
    """Calls in the console's source by the name that is called."""
    found: dict[str, list[tuple[Path, ast.Call]]] = {}
    for path in sorted(CONSOLE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found.setdefault(node.func.id, []).append((path, node))
    return found


def calls(name: str) -> list[tuple[Path, ast.Call]]:
    return all_calls()[name]


def argument(call: ast.Call, place: int, name: str) -> ast.expr:
    named = [each.value for each in call.keywords if each.arg == name]
    return named[0] if named else call.args[place]


def sentence_codes() -> list[tuple[str, frozenset[str] | None]]:
    """Each code, with the names of its values where the call contains them."""
    found: list[tuple[str, frozenset[str] | None]] = []
    for path, call in calls("Sentence"):
        code, values = argument(call, 0, "code"), argument(call, 1, "values")
        if isinstance(code, ast.Constant):
            found.append((code.value, _names(values)))
            continue
        made = MADE.get((path.name, ast.unparse(code)))
        assert made, (
            f"{path.name}:{call.lineno} makes codes of sentences ({ast.unparse(code)}) that MADE "
            "does not list"
        )
        found += [(each, None) for each in made]
    return found


def _names(values: ast.expr) -> frozenset[str] | None:
    if not isinstance(values, ast.Dict):
        return None
    return frozenset(key.value for key in values.keys if isinstance(key, ast.Constant))


def catalogue(name: str) -> dict[str, str]:
    lines = CATALOGUES[name].read_text(encoding="utf-8").splitlines()
    found = (re.match(r'\s+"([\w.\-/]+)": "(.*)",$', line) for line in lines)
    return {each[1]: each[2] for each in found if each}


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)", text))


@pytest.mark.parametrize("language", CATALOGUES)
def test_every_sentence_has_its_words(language: str) -> None:
    words = catalogue(language)
    codes = sentence_codes()
    assert len(codes) > 40
    assert [code for code, _ in codes if f"sentence.{code}" not in words] == []
    strange = {
        code: placeholders(words[f"sentence.{code}"]) - names
        for code, names in codes
        if names is not None
    }
    assert {code: names for code, names in strange.items() if names} == {}, (
        "names that the server does not send"
    )


def test_both_languages_ask_for_the_same_values() -> None:
    english, chinese = catalogue("en"), catalogue("zh-CN")
    reported = [key for key in english if key.startswith(("sentence.", "warning.", "attention."))]
    missing = {key: placeholders(chinese[key]) - placeholders(english[key]) for key in reported}
    assert {key: names for key, names in missing.items() if names} == {}


@pytest.mark.parametrize("language", CATALOGUES)
def test_every_warning_has_its_words(language: str) -> None:
    words = catalogue(language)
    codes = {
        code.value
        for _, call in calls("Warning")
        if isinstance(code := argument(call, 0, "code"), ast.Constant)
    }
    assert codes >= {"series-missing", "history-syncing"}
    assert [code for code in sorted(codes) if f"warning.{code}" not in words] == []


def has_fixed_hint(call: ast.Call) -> bool:
    """A text, or a constant of this source with message and hint (`*OFF`)."""
    if call.args and isinstance(call.args[-1], ast.Starred):
        value = call.args[-1].value
        return isinstance(value, ast.Name) and value.id.isupper()
    return isinstance(argument(call, 3, "hint"), ast.Constant)


@pytest.mark.parametrize("language", CATALOGUES)
def test_every_hint_of_a_warning_has_its_words_and_keeps_what_the_server_reports(
    language: str,
) -> None:
    """A hint that the server composes (an address, a flag) is inserted into the catalogue's
    sentence.
    """
    words = catalogue(language)
    made: dict[str, bool] = {}
    for _, call in calls("Warning"):
        code = argument(call, 0, "code")
        if isinstance(code, ast.Constant):
            made[code.value] = not has_fixed_hint(call)
    # `_warning` uses the source's hint
    made |= dict.fromkeys(
        ("cache-syncing", "crd-missing", "forbidden", "prometheus-unreachable"), True
    )
    assert [code for code in sorted(made) if f"hint.{code}" not in words] == []
    own = ("chart-empty", "events-forbidden", "events-unread", "series-missing")
    assert [
        code
        for code, is_made in sorted(made.items())
        if is_made and code not in own and "{hint}" not in words[f"hint.{code}"]
    ] == []


@pytest.mark.parametrize("language", CATALOGUES)
def test_every_refusal_has_its_words(language: str) -> None:
    words = catalogue(language)
    codes = set(CODES_BY_STATUS.values()) | named_refusals()
    assert codes >= {"csrf", "foreign-host", "no-quota"}
    assert [code for code in sorted(codes) if f"error.{code}" not in words] == []
    silent = [
        code
        for code in sorted(codes)
        if code not in OWN_WORDS and "{error}" not in words[f"error.{code}"]
    ]
    assert silent == [], "the server's answer is dropped"


OWN_WORDS: Final = ("not-ready", "conflict", "invalid", "read-only")
"""Refusals whose catalogue entry contains the whole text."""


def named_refusals() -> set[str]:
    """Codes that a route sets itself, because its status has several, and those of `may`."""
    found = denied_codes()
    for path, call in calls("Refused"):
        for code in (each.value for each in call.keywords if each.arg == "code"):
            if path.name == "subjects.py":
                continue
            if ast.unparse(code) == "blocked.code":  # of a `Blocked` of `http/writing`
                found |= {"blocked", "exists"}
                continue
            assert isinstance(code, ast.Constant), (
                f"{path.name}:{call.lineno} makes a code of an error; list it here"
            )
            found.add(code.value)
    return found


def denied_codes() -> set[str]:
    """Those that `rules/people/may` gives to refusals; `http/subjects` passes them on."""
    outsider = Subject("", UserRole.RESEARCHER)
    somewhere = Subject("", UserRole.RESEARCHER, namespaces=frozenset({"a"}))
    answers = [
        may(subject, verb, resource, namespace)
        for subject in (outsider, somewhere)
        for verb in ConsoleVerb
        for resource in ConsoleResource
        for namespace in ("", "b")
    ]
    return {answer.code for answer in answers if isinstance(answer, Denied)}


def test_no_hint_of_the_server_is_replaced_by_a_general_one() -> None:
    for language in CATALOGUES:
        for code in ("not-found", "malformed"):
            assert "{hint}" in catalogue(language)[f"hint.{code}"]


@pytest.mark.parametrize("language", CATALOGUES)
def test_what_quota_reports_has_its_words_with_all_its_values(language: str) -> None:
    words = catalogue(language)
    for code, english in CLAUSES.items():
        printed = words[f"sentence.clause-{code}"]
        assert (
            printed == english
            if language == "en"
            else placeholders(printed) == placeholders(english)
        ), code


def test_every_sentence_of_fairlead_on_a_wait_has_a_code() -> None:
    """Sentences of Kubernetes and of quota are shown in their own words (`_condition`)."""
    bare = [ast.unparse(call) for call in own_waits() if len(call.args) < 3]
    assert bare == ["Wait(condition.reason or type_, condition.message or condition.reason)"]
    assert len(WAITS) > 8


@pytest.mark.parametrize("language", CATALOGUES)
def test_every_fault_of_a_quota_tree_has_its_words(language: str) -> None:
    assert [code for code in ViolationCode if f"fault.{code}" not in catalogue(language)] == []


@pytest.mark.parametrize("language", CATALOGUES)
def test_every_reason_to_wait_has_its_word(language: str) -> None:
    """The reasons of quota, those of Fairlead's own rules, and the usual ones of Kubernetes."""
    own = {node.args[0].value for node in own_waits() if isinstance(node.args[0], ast.Constant)}
    assert len(own) > 5, "they are written otherwise now"
    kubernetes = {
        "Unschedulable",
        "ImagePullBackOff",
        "ErrImagePull",
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "ContainerCreating",
    }
    missing = {f"reason.{each}" for each in (*map(str, Reason), *own, *kubernetes)} - catalogue(
        language
    ).keys()
    assert not missing


@pytest.mark.parametrize("name", sorted(CATALOGUES))
def test_every_dependency_and_its_states_have_a_name(name: str) -> None:
    written = CATALOGUES[name].read_text(encoding="utf-8")
    keys = [
        *(f"health.{each}" for each in AFFECTED_CONTENT),
        *(f"health.is.{state}" for state in STATES),
    ]
    assert [key for key in keys if f'"{key}": ' not in written] == []


def test_every_step_of_a_jobs_life_has_words() -> None:
    """Except the last step, for which the board has a word."""
    steps = {
        value
        for name, value in vars(job_life).items()
        if name.isupper()
        and not name.startswith("_")
        and isinstance(value, str)
        and value.isalpha()
    }
    assert {"created", "pods", "restarted"} <= steps
    for name in CATALOGUES:
        assert {f"life.{step}" for step in steps - {job_life.ENDED}} <= catalogue(name).keys()


FINDER: Final = CONSOLE.parent / "edge" / "queries" / "exporter_pods.py"
WORDS_THAT_MEND: Final = {
    **{name: path.read_text(encoding="utf-8") for name, path in CATALOGUES.items()},
    "Health": "\n".join(SETTINGS.values()),
    "GPU exporters": FINDER.read_text(encoding="utf-8"),
}


@pytest.mark.parametrize("name", WORDS_THAT_MEND)
def test_what_mends_an_installation_names_a_part_and_no_file_to_apply(name: str) -> None:
    """The files in deploy/ have another image, and perhaps other namespaces and values."""
    text = WORDS_THAT_MEND[name]
    assert not re.findall(r"(?:apply|run|部署) deploy/", text, re.IGNORECASE)
    named = set(re.findall(r"parts\.(\w+)=true", text))
    assert named and named <= {each.encode_name for each in msgspec.structs.fields(Parts)}
