"""`fairlead quota why`, `fairlead why` and `arena get --explain` on the cluster of document 004: one sentence, the same in all."""

from __future__ import annotations

import pytest
from tests.cli.command import run_command
from tests.cli.quota.demo import demo, nginx, said

from fairlead.errors import UserError
from fairlead.model.snapshot import ClusterSnapshot

SENTENCE = (
    "cpu asks 5; root 40/40 in use; root.b.1 uses 10 of guaranteed 10, so it may only borrow idle quota; "
    "biggest borrowers: root.a.1 +5, root.a.2 +5"
)


def why(name: str, snapshot: ClusterSnapshot | None = None) -> str:
    return run_command(f"quota why {name}", snapshot or demo(), "fairlead").out


def test_a_pod_that_waits() -> None:
    assert why("namespace3/nginx3-3") == (
        f"{SENTENCE}\n"
        "\n"
        "Pod:     namespace3/nginx3-3\n"
        "Reason:  WaitingForIdleQuota\n"
        "Leaf:    root.b.1\n"
        "Place:   2 of those that wait in root.b.1\n"
        "\n"
        "BLOCKED AT  RESOURCE  ASKS  USED  CLAIMED  MAX\n"
        "root        cpu       5     40    0        40\n"
        "\n"
        "BORROWER  RESOURCE  OVER MIN\n"
        "root.a.1  cpu       5\n"
        "root.a.2  cpu       5\n"
    )


def test_a_deployment_of_which_pods_wait() -> None:
    text = why("namespace3/nginx3")
    assert text.startswith(f"3 of 5 pods wait: {SENTENCE}\n\nDeployment:  namespace3/nginx3\n")
    assert "Pods:        2 of 5 admitted\n" in text
    assert "namespace3/nginx3-4  3      WaitingForIdleQuota\n" in text


def test_a_pod_that_is_admitted() -> None:
    assert why("namespace1/nginx1-0") == (
        "root.a.1 uses 15 of guaranteed 10 cpu, borrows 5\n"
        "\n"
        "Pod:     namespace1/nginx1-0\n"
        "Reason:  Admitted\n"
        "Leaf:    root.a.1\n"
        "\n"
        "RESOURCE  USED  MIN  BORROWED  MAX\n"
        "cpu       15    10   5         20\n"
    )


def test_the_sentence_of_the_condition_everywhere() -> None:
    condition = said("WaitingForIdleQuota", "the sentence that stands in the condition")
    snapshot = demo([*nginx(1, 3, 2), *nginx(2, 3, 2), *nginx(3, 2, 3, conditions=(condition,))])

    assert why("namespace3/nginx3-2", snapshot).startswith("the sentence that stands in the condition\n")
    assert (
        "Told:         WaitingForIdleQuota: the sentence that stands in the condition\n"
        in run_command("why namespace3/nginx3-2", snapshot, "fairlead").out
    )


def test_without_a_condition_fairlead_why_says_what_the_plan_says() -> None:
    assert f"Told:         WaitingForIdleQuota: {SENTENCE}\n" in run_command("why namespace3/nginx3-2", demo(), "fairlead").out


def test_the_namespace_may_be_that_of_the_context() -> None:
    with pytest.raises(UserError, match="there is no pod and no job `default/nginx3-2`") as refusal:
        why("nginx3-2")
    assert refusal.value.hint == "there is namespace3/nginx3-2"


@pytest.mark.parametrize("text", ["a/b/c", "namespace3/", "/"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(UserError, match="names no pod and no job"):
        why(text)


def test_a_hostile_sentence_moves_no_cursor() -> None:
    condition = said("WaitingForIdleQuota", "all is well\x1b[2J\nReason: Admitted")
    snapshot = demo([*nginx(1, 3, 2), *nginx(2, 3, 2), *nginx(3, 2, 3, conditions=(condition,))])
    text = why("namespace3/nginx3-2", snapshot)
    assert "\x1b" not in text
    assert text.splitlines()[0].startswith("all is well")
    assert "\nReason: Admitted" not in text


def test_long_lists_are_cut_and_counted() -> None:
    text = why("namespace3/nginx3", demo([*nginx(1, 4, 0), *nginx(2, 4, 0), *nginx(3, 0, 25)]))
    assert "and 5 more\n" in text
