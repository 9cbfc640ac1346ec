"""Helm's answers, as Helm 3.22 and Helm 4.3 print them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.errors import OutsideError
from fairlead.model.operations.operation import HelmRelease
from fairlead.wire.helm.failures import failure_of, is_absent
from fairlead.wire.helm.releases import (
    parse_history,
    parse_list,
    parse_rendered,
    split_chart,
    with_label,
)


def row(revision: int, status: str, description: str = "", chart: str = "fluid-1.0.8") -> Any:
    return {
        "revision": revision,
        "updated": "2026-11-29T06:33:20.795582516Z",
        "status": status,
        "chart": chart,
        "app_version": "1.0.8-2f4a",
        "description": description,
    }


def history(*rows: Any) -> HelmRelease | None:
    return parse_history("fluid", "fluid-system", json.dumps(rows).encode())


def test_the_newest_revision_names_the_operation() -> None:
    found = history(row(1, "superseded"), row(2, "deployed", "fairlead operation abc123"))
    assert found == HelmRelease(
        *("fluid", "fluid-system", "deployed", 2, "fluid", "1.0.8", "1.0.8-2f4a"),
        operation="abc123",
        deployed=2,
        is_own=True,
    )


def test_the_order_of_rows_does_not_matter() -> None:
    found = history(row(2, "deployed"), row(1, "superseded"))
    assert found is not None
    assert found.revision == 2


@pytest.mark.parametrize(
    ("rows", "deployed"),
    [
        ([row(1, "pending-install")], 0),
        ([row(1, "failed"), row(2, "pending-upgrade")], 0),
        ([row(1, "superseded"), row(2, "deployed"), row(3, "pending-upgrade")], 2),
        ([row(1, "superseded"), row(2, "superseded"), row(3, "pending-rollback")], 2),
        ([row(1, "superseded"), row(2, "deployed"), row(3, "failed")], 2),
    ],
)
def test_the_revision_to_go_back_to(rows: list[Any], deployed: int) -> None:
    found = history(*rows)
    assert found is not None
    assert found.deployed == deployed


def test_a_pending_revision_has_its_operation_in_the_label() -> None:
    found = history(row(1, "pending-install", "Initial install underway"))
    assert found is not None
    assert found.operation == ""
    assert not found.is_own
    labelled = with_label(found, "abc123\n")
    assert (labelled.operation, labelled.is_own) == ("abc123", True)
    assert not with_label(found, "\n").is_own


@pytest.mark.parametrize("is_described", [True, False])
def test_a_rollback_repeats_a_revision_and_has_no_operation(is_described: bool) -> None:
    first = row(1, "superseded", "fairlead operation abc" if is_described else "Install complete")
    found = history(first, row(2, "failed"), row(3, "deployed", "Rollback to 1"))
    assert found is not None
    assert (found.operation, found.is_own, found.rolled_back_to) == ("", is_described, 1)
    labelled = with_label(found, "abc")
    assert (labelled.operation, labelled.is_own) == ("", True)


@pytest.mark.parametrize(
    "text",
    ["Upgrade complete", "a fairlead operation abc", "fairlead operation abc def", ""],
)
def test_other_descriptions_name_no_operation(text: str) -> None:
    found = history(row(1, "deployed", text))
    assert found is not None
    assert found.operation == ""


def test_no_revision_is_no_release() -> None:
    assert history() is None


@pytest.mark.parametrize("answer", [b"null", b'[{"revision": "1"}]', b"Error: x", b"{}"])
def test_an_answer_of_another_form_is_an_error(answer: bytes) -> None:
    with pytest.raises(OutsideError) as caught:
        parse_history("a", "b", answer)
    assert caught.value.system == "helm"


def test_the_list_of_all_namespaces() -> None:
    answer = [
        {
            "name": "r3",
            "namespace": "sp",
            "revision": "3",
            "updated": "2026-11-29 06:33:25.301026062 +0000 UTC",
            "status": "deployed",
            "chart": "small-1.2.3",
            "app_version": "9",
        }
    ]
    assert parse_list(json.dumps(answer).encode()) == (
        HelmRelease("r3", "sp", "deployed", 3, "small", "1.2.3", "9", deployed=3),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fluid-1.0.8", ("fluid", "1.0.8")),
        ("kube-prometheus-stack-61.3.2", ("kube-prometheus-stack", "61.3.2")),
        ("a-1.0.0-rc.1+build-7", ("a", "1.0.0-rc.1+build-7")),
        ("v-v2.0.0", ("v", "v2.0.0")),
        ("no-version", ("no-version", "")),
    ],
)
def test_a_chart_is_a_name_and_a_version(text: str, expected: tuple[str, str]) -> None:
    assert split_chart(text) == expected


def test_rendered_objects_without_empty_documents() -> None:
    text = b"---\n# Source: a\nkind: ConfigMap\n---\n---\nkind: List\nitems: [{kind: A}]\n"
    assert [each["kind"] for each in parse_rendered(text)] == ["ConfigMap", "A"]


def test_the_reason_is_one_line_that_a_terminal_can_show() -> None:
    found = failure_of("level=WARN msg=x\nError: UPGRADE FAILED: a\n\tb \x1b[31mred\n")
    assert found.reason == "UPGRADE FAILED: a b ?[31mred"


@pytest.mark.parametrize(
    ("errors", "is_unreachable"),
    [
        ("Error: Kubernetes cluster unreachable: Get: dial tcp: connect: connection refused", True),
        ("Error: kubernetes cluster unreachable: the server has asked for credentials", True),
        (
            "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
            False,
        ),
        ('Error: path "./nochart" not found', False),
    ],
)
def test_a_lost_api_server_is_known(errors: str, is_unreachable: bool) -> None:
    assert failure_of(errors).is_unreachable is is_unreachable


REFUSED = "dial tcp 127.0.0.1:1: connect: connection refused"
CHART_HINT = "check the chart's address and version, and that this machine reaches it"


@pytest.mark.parametrize(
    ("errors", "hint"),
    [
        (f'Error: Get "https://127.0.0.1:1/v2/charts/a/tags/list": {REFUSED}', CHART_HINT),
        (f'Error: Get "https://charts.example/a-1.0.0.tgz": {REFUSED}', CHART_HINT),
        (f'Error: Get "https://127.0.0.1:1/apis/autoscaling/v2/x": {REFUSED}', ""),
        (
            f'Error: Kubernetes cluster unreachable: Get "https://127.0.0.1:1/version": {REFUSED}',
            "",
        ),
    ],
)
def test_a_registry_that_does_not_answer_has_a_hint_about_the_chart(errors: str, hint: str) -> None:
    """As Helm 3 and 4 print it."""
    assert failure_of(errors).hint == hint


def test_an_absent_release() -> None:
    assert is_absent("Error: release: not found")
    assert not is_absent('Error: path "./release" not found')
