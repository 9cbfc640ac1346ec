"""Entries are added to the text of a kubeconfig and removed again; everything else stays, byte for
byte.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.kubeconfig_texts import KUBECTL, WITH_COMMENTS

from fairlead.wire.files.kubeconfig_text import SECTIONS, with_entries, without_entries

ENTRIES: dict[str, dict[str, Any]] = {
    "clusters": {
        "name": "fairlead",
        "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "QQ=="},
    },
    "contexts": {"name": "fairlead", "context": {"cluster": "fairlead", "user": "fairlead-admin"}},
    "users": {"name": "fairlead-admin", "user": {"token": "t"}},
}
NAMES = {section: entry["name"] for section, entry in ENTRIES.items()}

JSON = json.dumps(yaml.safe_load(KUBECTL), indent=2) + "\n"
LAYOUTS = {
    "as kubectl writes it": KUBECTL,
    "without a last line end": KUBECTL.rstrip("\n"),
    "with the line ends of Windows": KUBECTL.replace("\n", "\r\n"),
    "with comments and indented lists": WITH_COMMENTS,
    "JSON": JSON,
    "JSON on one line": json.dumps(yaml.safe_load(KUBECTL)),
    "empty lists": "apiVersion: v1\nkind: Config\nclusters: []\ncontexts: []\nusers: []\n",
    "nulls, as kubectl leaves them": (
        'apiVersion: v1\nclusters: null\ncontexts: null\ncurrent-context: ""\nkind: '
        "Config\nusers: null\n"
    ),
    "bare keys": "kind: Config\nclusters:\ncontexts:\nusers:\ncurrent-context:",
    "no lists": "apiVersion: v1\nkind: Config\n",
    "no lists in JSON": '{"kind": "Config"}',
    "an empty object": "{}",
    "nulls in JSON": (
        '{"kind": "Config", "clusters": null, "users": [], "contexts": null, "current-context": ""}'
    ),
    "a comment alone": "# here come clusters\n",
    "an empty document": "---\n",
    "an alias elsewhere": KUBECTL.replace(
        "token: secret", "token: &t secret\n- name: bob\n  user:\n    token: *t"
    ),
    "a byte order mark": "\ufeff" + KUBECTL,
}
NOT_ALONE = {
    "a list behind an alias": "kept: &c [{name: a, cluster: {}}]\nclusters: *c\n",
    "an entry below its dash": "clusters:\n-\n  name: fairlead\n  cluster: {}\n",
    "an end of the document": "kind: Config\n...\n",
    "a list with an anchor": "clusters: &c\n- name: a\n  cluster: {}\n",
    "a null": "null\n",
}


def others(text: str, section: str) -> list[Any]:
    return [
        entry
        for entry in (yaml.safe_load(text) or {}).get(section) or ()
        if entry["name"] != NAMES[section]
    ]


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_entries_come_in_beside_the_others_and_go_out_again(text: str) -> None:
    merged = with_entries(text, ENTRIES, "" if "current-context: prod" in text else "fairlead")
    found = yaml.safe_load(merged)
    for section in SECTIONS:
        assert ENTRIES[section] in found[section]
        assert others(merged, section) == others(text, section)
    lines = merged.splitlines()
    if not text.lstrip("\ufeff").startswith("{"):
        assert [
            line
            for line in text.splitlines()
            if line.strip().startswith(("#", "-", "server", "token", "certificate"))
        ] == [
            line
            for line in lines
            if line in text.splitlines()
            and line.strip().startswith(("#", "-", "server", "token", "certificate"))
        ]
    else:
        json.loads(merged)
    parted = without_entries(merged, NAMES)
    for section in SECTIONS:
        assert (yaml.safe_load(parted).get(section) or []) == others(text, section)


@pytest.mark.parametrize("text", [KUBECTL, WITH_COMMENTS, JSON, KUBECTL.replace("\n", "\r\n")])
def test_where_others_stand_what_went_in_and_out_leaves_no_trace(text: str) -> None:
    assert without_entries(with_entries(text, ENTRIES), NAMES) == text


def test_entries_of_the_same_names_are_replaced_wherever_they_stand() -> None:
    old = json.loads(json.dumps(ENTRIES).replace("6443", "1").replace('"t"', '"old"'))
    for text in (KUBECTL, WITH_COMMENTS, JSON):
        assert with_entries(with_entries(text, old), ENTRIES) == with_entries(text, ENTRIES)
    last = KUBECTL + "- name: fairlead-admin\n  user:\n    token: old\n# mine\n"
    assert with_entries(last, ENTRIES) == with_entries(KUBECTL + "# mine\n", ENTRIES)


def test_the_current_context_is_kept_unless_one_is_named_and_the_one_before_comes_back() -> None:
    kept, asked = with_entries(KUBECTL, ENTRIES), with_entries(KUBECTL, ENTRIES, "fairlead")
    assert [yaml.safe_load(text)["current-context"] for text in (kept, asked)] == [
        "prod",
        "fairlead",
    ]
    assert yaml.safe_load(without_entries(asked, NAMES, "prod")) == yaml.safe_load(KUBECTL)
    assert yaml.safe_load(without_entries(asked, NAMES))["current-context"] == ""


def test_a_current_context_of_any_letters_comes_back() -> None:
    text = KUBECTL.replace("prod", "生产-\U0001f680")
    assert yaml.safe_load(
        without_entries(with_entries(text, ENTRIES, "fairlead"), NAMES, "生产-\U0001f680")
    ) == yaml.safe_load(text)


@pytest.mark.parametrize("text", NOT_ALONE.values(), ids=NOT_ALONE.keys())
def test_what_cannot_be_changed_alone_is_refused_as_a_layout_and_not_as_a_fault_of_the_file(
    text: str,
) -> None:
    with pytest.raises(ValueError) as caught:
        with_entries(text, ENTRIES)
    assert str(caught.value) in (
        "it is laid out in a way that does not let entries be changed alone",
        "its `clusters` are laid out in a way that does not let one be changed alone",
    )


WORDS = st.text("ab-: #'\"{}[],&*\\\té", max_size=8)
NAMED = st.lists(st.text("abc#:' ", min_size=1, max_size=4), max_size=3, unique=True)


@settings(max_examples=25)
@given(
    names=NAMED, word=WORDS, style=st.sampled_from([None, True, False]), indent=st.integers(2, 6)
)
def test_any_words_in_any_style_survive(
    names: list[str], word: str, style: bool | None, indent: int
) -> None:
    document = {
        section: [
            {"name": name, key: {"extensions": [{"name": word}], word: [word, None]}}
            for name in names
        ]
        for section, key in (("clusters", "cluster"), ("contexts", "context"), ("users", "user"))
    }
    text = yaml.safe_dump(document, default_flow_style=style, indent=indent, allow_unicode=True)
    merged = with_entries(text, ENTRIES)
    assert [others(merged, section) for section in SECTIONS] == [
        document[section] for section in SECTIONS
    ]
    parted = without_entries(merged, NAMES)
    assert {key: value or [] for key, value in yaml.safe_load(parted).items()} == document
    if names:
        assert parted == text
