"""The rules of admission, against the same table as the API server's admission policies."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kube.quota_admission_cases import (
    BESIDE,
    BIRTHS,
    CHANGES,
    GATE,
    GROWTHS,
    LEAF,
    MANAGED,
    NEW_JOBS,
    USER,
    Change,
    Who,
    merged,
)

from fairlead.model.quota.written import Writer, WrittenObject, written_job
from fairlead.rules.quota.admission import (
    additions,
    begins_suspended,
    refuse_binding,
    refuse_change,
    refuse_new,
    refuse_resize,
    refuse_stamp,
    stamp,
)
from fairlead.wire.kube.quantity import parse_amounts


def writer(who: Who) -> Writer:
    return Writer(*who)


def written(metadata: dict[str, Any], **more: Any) -> WrittenObject:
    return WrittenObject(metadata.get("labels") or {}, metadata.get("annotations") or {}, **more)


@pytest.mark.parametrize("case", BIRTHS)
def test_a_new_pod(case: str) -> None:
    birth = BIRTHS[case]
    gates = tuple(each["name"] for each in birth.spec.get("schedulingGates", ()))
    pod = written(birth.metadata, gates=gates, node=birth.spec.get("nodeName", ""))
    added = additions(pod, writer(birth.who))
    born = written(
        {**birth.metadata, "labels": {**pod.labels, **added.labels}},
        gates=(*gates, *([added.gate] if added.gate else [])),
        node=pod.node,
    )
    refusal = refuse_new(born, writer(birth.who), LEAF)
    assert (refusal.reason if refusal else "") == birth.refused
    if not birth.refused:
        assert (born.gates, born.labels) == (birth.gates, birth.labels)


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (WrittenObject({MANAGED: "true"}), f"a new pod needs the scheduling gate {GATE} here"),
        (WrittenObject({}, gates=(GATE,)), f"a new pod needs the label {MANAGED}=true here"),
        (
            WrittenObject({MANAGED: "false"}, gates=(GATE,)),
            f"a new pod needs the label {MANAGED}=true here",
        ),
    ],
)
def test_a_pod_that_the_injector_did_not_see_is_refused(pod: WrittenObject, why: str) -> None:
    for user in ("alice", "system:serviceaccount:fairlead-system:fairlead-quota-controller"):
        refusal = refuse_new(pod, Writer(user, ("system:masters",)), LEAF)
        assert refusal is not None and refusal.reason == why


def judged(change: Change) -> str:
    if change.how in ("binding", "bindings"):
        binding = written({"labels": change.labels, "annotations": change.annotations})
        refusal = refuse_binding(binding, writer(change.who), LEAF)
    else:
        before = written(change.before, gates=() if change.admitted else (GATE,))
        before = WrittenObject({MANAGED: "true", **before.labels}, before.annotations, before.gates)
        labels, annotations = (
            merged(dict(before.labels), change.labels),
            merged(dict(before.annotations), change.annotations),
        )
        after = WrittenObject(labels, annotations, () if change.how == "ungate" else before.gates)
        refusal = refuse_change(before, after, writer(change.who), LEAF)
    return refusal.reason if refusal else ""


@pytest.mark.parametrize("case", CHANGES)
def test_a_change(case: str) -> None:
    assert judged(CHANGES[case]) == CHANGES[case].refused


@pytest.mark.parametrize("case", GROWTHS)
def test_a_resize(case: str) -> None:
    growth = GROWTHS[case]
    before, after = (WrittenObject(requests=total(each)) for each in (growth.before, growth.after))
    refusal = refuse_resize(before, after, writer(growth.who), ("cpu", "nvidia.com/gpu"))
    assert (refusal.reason if refusal else "") == growth.refused


def total(requests: tuple[dict[str, str], ...]) -> dict[str, int]:
    amounts = [parse_amounts(each) for each in requests]
    return {
        name: sum(each.get(name, 0) for each in amounts)
        for name in {key for each in amounts for key in each}
    }


@pytest.mark.parametrize("case", NEW_JOBS)
def test_a_job_with_a_deadline_begins_suspended(case: str) -> None:
    job = NEW_JOBS[case]
    owners = [{"kind": job.controller, "controller": True}] if job.controller else []
    obj = {
        "apiVersion": job.version,
        "kind": job.kind,
        "metadata": {"ownerReferences": owners},
        "spec": job.spec,
    }
    assert begins_suspended(written_job(obj, {}, job.annotations)) == job.begins_suspended


def test_a_namespace_without_a_leaf_accepts_no_name() -> None:
    pod = WrittenObject(
        {MANAGED: "true", "quota.scheduling.alibabacloud.com/name": "root"}, gates=(GATE,)
    )
    refusal = refuse_new(pod, Writer("alice"), "")
    assert refusal is not None and refusal.reason.endswith(
        "names root, and this namespace is on no leaf"
    )


def test_what_a_user_makes_carries_the_users_name_and_keeps_it() -> None:
    bob, alice, admin = (
        Writer("system:serviceaccount:kube-ai:bob"),
        Writer("alice"),
        Writer("root", ("system:masters",)),
    )
    assert (stamp(bob), stamp(alice)) == ({USER: "bob"}, {})
    his, hers = WrittenObject({USER: "bob"}), WrittenObject({USER: "alice"})
    assert refuse_stamp(his, WrittenObject({USER: "bob", "app": "web"}), alice) is None
    assert refuse_stamp(his, hers, admin) is None
    for after in (hers, WrittenObject()):
        for who in (bob, writer(BESIDE)):
            refusal = refuse_stamp(his, after, who)
            assert refusal is not None and refusal.reason == f"the label {USER} may not be changed"
