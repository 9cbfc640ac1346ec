"""Manifests of a component: what is accepted, and what is refused with its place."""

from __future__ import annotations

import pytest

from fairlead.errors import UserError
from fairlead.wire.components.manifests import parse_manifests

ONE = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n}}"


def test_documents_and_lists() -> None:
    text = f"---\n{ONE}\n---\n# nothing\n---\n{{kind: List, items: [{ONE.replace('a,', 'b,')}]}}\n"
    assert [each["metadata"]["name"] for each in parse_manifests(text, "f")] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "manifests `f` are not YAML: "),
        ("just text", "document 1 of `f` is no object of Kubernetes"),
        (f"{ONE}\n---\n[1]", "document 2 of `f` is no object of Kubernetes"),
        ("{kind: ConfigMap, metadata: {name: a}}", "document 1 of `f` is no object"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: []}", "document 1 of `f` is no object"),
        ("{apiVersion: v1, kind: A, metadata: {name: a}, spec: 7}", "document 1 of `f` is no"),
        (f"{ONE}\n---\n{ONE}", "`f` has ConfigMap n/a twice"),
    ],
)
def test_what_is_refused(text: str, what: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_manifests(text, "f")
    assert caught.value.what.startswith(what)
    assert caught.value.hint


def test_no_document_is_no_object() -> None:
    assert parse_manifests("", "f") == []
