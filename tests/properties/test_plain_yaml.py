"""The fast reader of plain YAML returns what PyYAML returns, or nothing: on files as programs write
them, and on changed ones.
"""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from fairlead.wire.files.bounded import load_yaml
from fairlead.wire.files.plain_yaml import parse_plain_yaml

KEYS = st.sampled_from(
    ["name", "user", "client-key-data", "a", "server", "On", "null", "y", "tokenFile", "x_1"]
)
PLAIN = (
    "a",
    "https://127.0.0.1:6443",
    "LS0tLS1CRUdJTg==",
    "/etc/ca.crt",
    "admin@prod",
    "true",
    "false",
    "",
    "{}",
    "y",
    "N",
    "a#b",
)
OTHERS = (
    "null",
    "Yes",
    "off",
    "1",
    "1.5",
    "0x1",
    "2026-01-01",
    "-",
    "~",
    "a:",
    ":",
    "a b",
    "=",
    ".5",
    "1_000",
    "nan",
    ".nan",
    "a #b",
    "Null",
)
WORDS = st.sampled_from((*PLAIN, *OTHERS))
SCALARS = st.one_of(WORDS, st.booleans(), st.none(), st.integers(), st.text(max_size=4))
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)
LINES = st.lists(
    st.builds(
        lambda indent, dash, key, value: f"{' ' * indent}{dash}{key}:{value}",
        st.integers(0, 6),
        st.sampled_from(["", "", "- ", "- - "]),
        KEYS,
        st.one_of(
            st.just(""), WORDS.map(lambda word: f" {word}"), WORDS.map(lambda word: f' "{word}"')
        ),
    ),
    max_size=8,
)


def as_pyyaml(text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError:
        return "an error"


def agrees(text: str) -> bool:
    """Whether the fast reader read the text. If it did, the result equals PyYAML's,
    types included.
    """
    found = parse_plain_yaml(text)
    assert found is None or repr(found) == repr(as_pyyaml(text)), text
    return found is not None


@examples(100, 1000, st.dictionaries(KEYS, DOCUMENTS, min_size=1, max_size=4), st.booleans())
def test_what_a_program_wrote(document: dict[str, Any], is_indented: bool) -> None:
    agrees(Indented.dump(document) if is_indented else yaml.safe_dump(document, sort_keys=False))


@examples(200, 2000, LINES)
@example(["a:", "   b:", "  - c: d"])
@example(["- a:", "  b: c", "- d: e"])
@example(["a: b", "  c: d"])
def test_lines_that_were_not_meant(lines: list[str]) -> None:
    agrees("\n".join(lines))


@given(st.data())
@settings(max_examples=400)
def test_a_kubeconfig_with_a_character_changed(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(KUBECONFIG)))
    piece = data.draw(
        st.sampled_from(
            [
                "",
                " ",
                "  ",
                "\n",
                "\t",
                "\r\n",
                ":",
                "- ",
                "#",
                " #",
                "'",
                '"',
                "\\",
                "&a ",
                "|",
                "é",
                "1",
                "{",
                "\x85",
            ]
        )
    )
    agrees(KUBECONFIG[:place] + piece + KUBECONFIG[place + data.draw(st.integers(0, 3)) :])


def test_what_kubectl_writes_is_plain() -> None:
    assert agrees(KUBECONFIG)
    assert agrees(Indented.dump(yaml.safe_load(KUBECONFIG)))


class Indented:
    """Writes lists two columns to the right of their key, as some programs do."""

    @staticmethod
    def dump(document: Any) -> str:
        class Dumper(yaml.SafeDumper):
            def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
                super().increase_indent(flow, False)

        return yaml.dump(document, Dumper=Dumper, sort_keys=False)


KUBECONFIG = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUQ=
    server: https://10.0.0.1:6443
  name: prod
- cluster:
    insecure-skip-tls-verify: true
    server: https://127.0.0.1:8443
  name: minikube
contexts:
- context:
    cluster: prod
    namespace: ai
    user: kubernetes-admin
  name: kubernetes-admin@prod
current-context: kubernetes-admin@prod
kind: Config
preferences: {}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: LS0tLS1CRUdJTg==
    client-key-data: LS0tLS1CRUdJTiBSU0E=
- name: stranger
  user: {}
"""
