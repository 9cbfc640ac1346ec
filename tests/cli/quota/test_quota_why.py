"""`fairlead quota why`, `fairlead why` and `arena get --explain` on the cluster of document 004:
all three print the same sentence.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.command import Printed, run_command
from tests.cli.quota.demo import demo, nginx, not_admitted
from tests.cli.quota.researcher import REFUSED, Researcher, with_status

from fairlead.errors import Forbidden, OutsideError, UserError
from fairlead.model.event import Event
from fairlead.model.node import Condition
from fairlead.model.quota.rows import Workload
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source

SENTENCE = (
    "cpu asks 5; root 40/40 in use; root.b.1 uses 10 of guaranteed 10, so it may only borrow "
    "idle quota; "
    "biggest borrowers: root.a.1 +5, root.a.2 +5"
)


def why(name: str, snapshot: ClusterSnapshot | None = None) -> str:
    return run_command(f"quota why {name}", snapshot or demo(), "fairlead").out


def test_a_pod_that_waits() -> None:
    assert why("namespace3/nginx3-3") == (
        f"{SENTENCE}\n"
        "\n"
        "Pod:           namespace3/nginx3-3\n"
        "Reason:        WaitingForIdleQuota\n"
        "Leaf:          root.b.1\n"
        "Priority:      0\n"
        "Waits since:   1970-01-01T00:21:43Z (11m)\n"
        "Place:         in leaf root.b.1: 2 of 3; over all leaves: 2 of 7\n"
        "Must be free:  5 cpu more below root\n"
        "Evicted:       unknown: Events could not be read\n"
        "\n"
        "BEFORE IT            LEAF      PRIORITY  REASON\n"
        "namespace3/nginx3-2  root.b.1  0         WaitingForIdleQuota\n"
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
    assert text.startswith(f"3 of 5 pods wait: {SENTENCE}\n\nDeployment:    namespace3/nginx3\n")
    assert "Pods:          2 of 5 admitted\n" in text
    assert "WAITS                PLACE IN LEAF  OVER ALL  PRIORITY  REASON\n" in text
    assert "namespace3/nginx3-4  3              3         0         WaitingForIdleQuota\n" in text


def test_a_pod_that_is_admitted() -> None:
    assert why("namespace1/nginx1-0") == (
        "root.a.1 uses 15 of guaranteed 10 cpu, borrows 5\n"
        "\n"
        "Pod:       namespace1/nginx1-0\n"
        "Reason:    Admitted\n"
        "Leaf:      root.a.1\n"
        "Priority:  0\n"
        "Evicted:   unknown: Events could not be read\n"
        "\n"
        "RESOURCE  USED  MIN  BORROWED  MAX\n"
        "cpu       15    10   5         20\n"
    )


def document(name: str, snapshot: ClusterSnapshot | None = None) -> dict[str, Any]:
    printed = run_command(f"quota why {name} -o json", snapshot or demo(), "fairlead").out
    [item] = json.loads(printed)["items"]
    assert isinstance(item, dict)
    return item


def test_json_has_the_tables_values() -> None:
    item = document("namespace3/nginx3-3")
    [unit] = item.pop("units")
    assert item == {
        "kind": "pod",
        "name": "namespace3/nginx3-3",
        "reason": "WaitingForIdleQuota",
        "reasonSince": None,
        "message": SENTENCE,
        "leaf": "root.b.1",
        "pods": 1,
        "admitted": 0,
        "priority": 0,
        "waitsSince": "1970-01-01T00:21:43Z",
        "evictions": {"count": None, "last": None},
        "isReported": False,
        "usage": [
            {
                "resource": "cpu",
                "used": "10",
                "claimed": "0",
                "min": "10",
                "minWritten": "10",
                "borrowed": "0",
                "max": "20",
            }
        ],
    }
    assert unit["place"] == {
        "inLeaf": {"place": 2, "of": 3},
        "overAllLeaves": {"place": 2, "of": 7},
    }
    [ahead] = unit["ahead"]
    assert (ahead["unit"], ahead["reason"], unit["aheadInLeaf"], unit["aheadInOtherLeaves"]) == (
        *("namespace3/nginx3-2", "WaitingForIdleQuota"),
        *(1, {}),
    )
    assert unit["lacks"] == [{"of": "max", "at": "root", "resource": "cpu", "amount": "5"}]
    assert unit["blocked"] == [
        {"node": "root", "resource": "cpu", "asks": "5", "used": "40", "claimed": "0", "max": "40"}
    ]
    assert document("namespace1/nginx1-0")["units"] == []


def test_since_when_and_how_often_evicted() -> None:
    condition = Condition(
        "fairlead.io/QuotaAdmitted", "False", "WaitingForIdleQuota", SENTENCE, 1940.0
    )
    event = Event(
        "namespace3",
        "e",
        reason="QuotaReclaimed",
        message="nginx3-9: gone",
        object_uid="deploy-3",
        count=2,
        at=1700.0,
    )
    whole = demo([*nginx(1, 3, 2), *nginx(2, 3, 2), *nginx(3, 2, 3, conditions=(condition,))])
    snapshot = replace(whole, events=(event,), sources={"events": Source("events")})
    text = why("namespace3/nginx3-2", snapshot)
    assert "Reason:        WaitingForIdleQuota, for 1m\n" in text
    assert (
        "Evicted:       2 times, last 5m ago (its owner's pods together, as far as Events are "
        "kept)\n"
    ) in text
    item = document("namespace3/nginx3-2", snapshot)
    assert (item["reasonSince"], item["evictions"]) == (
        "1970-01-01T00:32:20Z",
        {"count": 2, "last": "1970-01-01T00:28:20Z"},
    )
    assert "Evicted:       never, as far as Events are kept\n" in why(
        "namespace3/nginx3-2", replace(snapshot, events=())
    )


def test_table_is_the_default_and_other_formats_are_refused() -> None:
    assert run_command("quota why namespace3/nginx3-3 -o table", demo(), "fairlead").out == why(
        "namespace3/nginx3-3"
    )
    assert (
        "overAllLeaves:"
        in run_command("quota why namespace3/nginx3-3 -o yaml", demo(), "fairlead").out
    )
    with pytest.raises(UserError, match="`wide`"):
        run_command("quota why namespace3/nginx3-3 -o wide", demo(), "fairlead")


def test_the_sentence_of_the_condition_everywhere() -> None:
    condition = not_admitted("WaitingForIdleQuota", "the sentence that stands in the condition")
    snapshot = demo([*nginx(1, 3, 2), *nginx(2, 3, 2), *nginx(3, 2, 3, conditions=(condition,))])

    assert why("namespace3/nginx3-2", snapshot).startswith(
        "the sentence that stands in the condition\n"
    )
    assert (
        "Message:      WaitingForIdleQuota: the sentence that stands in the condition\n"
        in run_command("why namespace3/nginx3-2", snapshot, "fairlead").out
    )


def test_without_a_condition_fairlead_why_prints_what_the_plan_contains() -> None:
    assert (
        f"Message:      WaitingForIdleQuota: {SENTENCE}\n"
        in run_command("why namespace3/nginx3-2", demo(), "fairlead").out
    )


def test_the_namespace_may_be_that_of_the_context() -> None:
    with pytest.raises(UserError, match="`default/nginx3-2`") as refusal:
        why("nginx3-2")
    assert refusal.value.hint == "there is namespace3/nginx3-2"


@pytest.mark.parametrize("text", ["a/b/c", "namespace3/", "/"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"`{text}`")):
        why(text)


def test_a_hostile_sentence_moves_no_cursor() -> None:
    condition = not_admitted("WaitingForIdleQuota", "all is well\x1b[2J\nReason: Admitted")
    snapshot = demo([*nginx(1, 3, 2), *nginx(2, 3, 2), *nginx(3, 2, 3, conditions=(condition,))])
    text = why("namespace3/nginx3-2", snapshot)
    assert "\x1b" not in text
    assert text.splitlines()[0].startswith("all is well")
    assert "\nReason: Admitted" not in text


def test_long_lists_are_cut_and_counted() -> None:
    text = why("namespace3/nginx3", demo([*nginx(1, 4, 0), *nginx(2, 4, 0), *nginx(3, 0, 25)]))
    assert "and 5 more\n" in text


# --- with the rights of one namespace -------------------------------------------------------------

NOTE = (
    "info: the pods of all namespaces cannot be read, so this is what the quota controller has "
    "written: the tree's status and the conditions of pods\n"
)
WAITS = replace(not_admitted("WaitingForIdleQuota", SENTENCE), at=1940.0)


def reported(name: str, whole: ClusterSnapshot | None = None, line: str = "") -> Printed:
    """The answer for a user of namespace3 alone."""
    pods = [*nginx(1, 3, 2), *nginx(2, 3, 2), *nginx(3, 2, 3, conditions=(WAITS,))]
    snapshot = with_status(demo(pods)) if whole is None else whole
    reader = Researcher(snapshot, "namespace3")
    return run_command(f"quota why {name} {line}", snapshot, "fairlead", reader=reader)


def test_a_researchers_pod_has_the_reason_that_the_controller_wrote() -> None:
    printed = reported("namespace3/nginx3-3")
    assert printed.err == NOTE
    assert printed.out == (
        f"{SENTENCE}\n"
        "\n"
        "Pod:          namespace3/nginx3-3\n"
        "Reason:       WaitingForIdleQuota, for 1m\n"
        "Leaf:         root.b.1\n"
        "Priority:     0\n"
        "Waits since:  1970-01-01T00:21:43Z (11m)\n"
        "Place:        unknown: needs the pods of all namespaces\n"
        "Evicted:      never, as far as Events are kept\n"
        "\n"
        "RESOURCE  USED  MIN  BORROWED  MAX\n"
        "cpu       10    10   0         20\n"
    )


def test_a_researchers_job_has_the_reason_of_its_oldest_waiting_pod() -> None:
    pods = nginx(3, 2, 3, conditions=(not_admitted("UserCap", "of a younger pod"),))
    pods[2] = replace(pods[2], conditions=(WAITS,))
    text = reported("namespace3/nginx3", with_status(demo(pods))).out
    assert text.startswith(f"3 of 5 pods wait: {SENTENCE}\n\nDeployment:   namespace3/nginx3\n")
    assert "Pods:         2 of 5 admitted\n" in text
    assert "Waits since:  1970-01-01T00:21:42Z (11m)\n" in text


def test_a_researchers_document_is_marked_as_reported() -> None:
    [item] = json.loads(reported("namespace3/nginx3-3", line="-o json").out)["items"]
    whole = document("namespace3/nginx3-3")
    assert item == {
        **whole,
        "isReported": True,
        "units": [],
        "reasonSince": "1970-01-01T00:32:20Z",
        "evictions": {"count": 0, "last": None},
    }


def test_a_researchers_admitted_pod_is_answered_as_an_administrators() -> None:
    snapshot = with_status(demo())
    known = [
        each.replace("unknown: Events could not be read", "never, as far as Events are kept")
        for each in why("namespace3/nginx3-0", snapshot).splitlines()
    ]
    assert reported("namespace3/nginx3-0", snapshot).out.splitlines() == known


def test_a_pod_of_which_nothing_is_written_yet() -> None:
    text = reported("namespace3/nginx3-3", with_status(demo())).out
    assert text.startswith("it waits for quota; the quota controller has not written why\n")
    assert "Reason:       Unknown\n" in text


def test_a_researchers_job_that_quota_suspended_or_lowered() -> None:
    job = Workload("Job", "batch/v1", "namespace3", "train", "u", pods=4, created_at=1400.0)
    suspended = replace(
        job, is_suspended=True, suspended_for="namespace1/x", can_suspend=True, priority=7
    )
    text = reported("namespace3/train", with_status(replace(demo([]), workloads=(suspended,)))).out
    assert text.startswith(
        "4 of 4 pods wait: the job is suspended to give quota back to namespace1/x; it resumes "
        "when there is room again\n"
    )
    assert "Reason:       QuotaSuspended\n" in text
    assert "Priority:     7\n" in text
    assert "Waits since:  1970-01-01T00:23:20Z (10m)\n" in text
    assert "Evicted:      once (" in text
    lowered = replace(job, pods=1, held=3, own_parallelism=4, parallelism=1, can_lower=True)
    text = reported("namespace3/train", with_status(replace(demo([]), workloads=(lowered,)))).out
    assert text.startswith("3 of 4 pods wait: its parallelism is lowered until there is room again")
    own = replace(job, is_suspended=True)
    text = reported("namespace3/train", with_status(replace(demo([]), workloads=(own,)))).out
    assert text.startswith("it has no unfinished pods, so it costs no quota\n"), "as in the plan"


def test_a_researcher_gets_no_answer_about_a_namespace_of_others() -> None:
    with pytest.raises(Forbidden, match='in the namespace "namespace1"'):
        reported("namespace1/nginx1-0")
    with pytest.raises(UserError, match="`namespace3/nginx1-0`"):
        reported("namespace3/nginx1-0")


def test_a_kind_that_a_researcher_may_not_read_is_warned_of() -> None:
    whole = with_status(demo())
    reader = Researcher(whole, "namespace3", unread="crons")
    printed = run_command("quota why namespace3/nginx3-0", whole, "fairlead", reader=reader)
    assert printed.err == (
        f"warning: crons cannot be read, so the answer may be wrong: {REFUSED}\n{NOTE}"
    )


def test_a_status_of_another_tree_is_warned_of() -> None:
    """And one without numbers: then it is unknown what the leaf uses."""
    whole = with_status(demo())
    tree = whole.quota_tree
    assert tree is not None
    changed = replace(whole, quota_tree=replace(tree, generation=2))
    assert reported("namespace3/nginx3-0", changed).err == (
        f"{NOTE}warning: the tree has changed since the quota controller wrote its status: ask an "
        "administrator whether the controller runs\n"
    )
    cut = replace(tree, status={**tree.status, "nodes": tree.status["nodes"][:2]})
    printed = reported("namespace3/nginx3-0", replace(whole, quota_tree=cut))
    assert printed.err == NOTE
    assert printed.out.startswith("it is admitted in root.b.1\n")


def test_a_plan_is_refused_with_what_works_instead() -> None:
    whole = with_status(demo())
    with pytest.raises(OutsideError) as refusal:
        run_command("quota plan", whole, "fairlead", reader=Researcher(whole, "namespace3"))
    assert refusal.value.what == f"pods cannot be read: {REFUSED}"
    assert "`fairlead quota why NAMESPACE/POD`" in refusal.value.hint
    assert "My work" in refusal.value.hint
