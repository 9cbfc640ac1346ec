"""Addresses of a component's pages."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.wire.components.links import page_links


def ingress(name: str = "grafana", release: str = "", **spec: Any) -> dict[str, Any]:
    marks = {"meta.helm.sh/release-name": release} if release else {}
    return {"metadata": {"name": name, "annotations": marks}, "spec": spec}


def test_those_of_the_release_and_of_the_inventory() -> None:
    found = [
        ingress("own", rules=[{"host": "own.example"}]),
        ingress("released", "stack", rules=[{"host": "b.example"}], tls=[{"hosts": ["b.example"]}]),
        ingress("other", "another", rules=[{"host": "c.example"}]),
        ingress("plain", rules=[{"host": "d.example"}]),
    ]
    assert page_links(found, ["own"], "stack") == ["http://own.example/", "https://b.example/"]
    assert page_links(found, [], "") == []


@pytest.mark.parametrize(
    "rule",
    [
        {"host": "*.example"},
        {"host": "a.example/<img onerror=x>"},
        {"host": "javascript:alert(1)"},
        {"host": "a.example", "http": {"paths": [{"path": "/x?a=b"}]}},
        {"host": "a.example", "http": {"paths": [{"path": "//evil@b"}]}},
        {},
    ],
)
def test_what_is_no_address_makes_no_link(rule: Any) -> None:
    assert page_links([ingress(rules=[rule])], ["grafana"], "") == []
