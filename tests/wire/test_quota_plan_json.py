"""The JSON of a quota plan equals the sample in docs/spec/quota.md#plan-as-json."""

from __future__ import annotations

from fairlead.model.quota.clauses import clause
from fairlead.model.quota.plan import (
    Borrower,
    EvictionMethod,
    FullQuotaNode,
    ProtectedPod,
    QuotaAdmission,
    QuotaClaim,
    QuotaEviction,
    QuotaNodeUse,
    QuotaPlan,
    QuotaResume,
    QuotaReturn,
    QuotaWaiting,
    Reason,
)
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod
from fairlead.model.quota.tree import Violation
from fairlead.wire.quota.plan_json import render_plan


def test_the_sample_of_the_contract() -> None:
    cpu = {"cpu": 5000}
    newcomer = QuotaPod("namespace3", "nginx3-x", "u3")
    plan = QuotaPlan(
        admit=(QuotaAdmission(newcomer, "root.b.1", True),),
        evict=(
            QuotaEviction(
                QuotaPod("namespace1", "nginx1-y", "u1"),
                "root.a.1",
                "namespace3/nginx3-x",
                frees=cpu,
            ),
        ),
        claims=(QuotaClaim("namespace3/nginx3-x", "root.b.1", cpu),),
        waiting=(
            QuotaWaiting(
                unit="namespace3/nginx3-z",
                leaf="root.b.1",
                pods=(QuotaPod("namespace3", "nginx3-z"),),
                reason=Reason.WAITING_FOR_IDLE_QUOTA,
                message="..",
                position=1,
                blocked=(
                    FullQuotaNode("root", "cpu", asks=5000, used=40_000, claimed=0, max=40_000),
                ),
                borrowers=(Borrower("root.a.1", "cpu", 5000),),
                spared=(
                    ProtectedPod(
                        "namespace1/nginx1-w", "PodDisruptionBudget namespace1/web allows 0"
                    ),
                ),
                clauses=(clause("never"),),
            ),
        ),
    )

    assert render_plan(plan) == {
        "admit": [
            {
                "namespace": "namespace3",
                "pod": "nginx3-x",
                "uid": "u3",
                "leaf": "root.b.1",
                "guaranteed": True,
            }
        ],
        "evict": [
            {
                "namespace": "namespace1",
                "pod": "nginx1-y",
                "uid": "u1",
                "leaf": "root.a.1",
                "for": "namespace3/nginx3-x",
                "how": "evict",
                "frees": {"cpu": "5"},
            }
        ],
        "disrupted": 1,
        "claims": [{"unit": "namespace3/nginx3-x", "leaf": "root.b.1", "request": {"cpu": "5"}}],
        "return": [],
        "resume": [],
        "waiting": [
            {
                "unit": "namespace3/nginx3-z",
                "pods": 1,
                "leaf": "root.b.1",
                "reason": "WaitingForIdleQuota",
                "position": 1,
                "message": "..",
                "clauses": [{"code": "never", "values": {}}],
                "blocked": [
                    {
                        "node": "root",
                        "resource": "cpu",
                        "asks": "5",
                        "used": "40",
                        "claimed": "0",
                        "max": "40",
                    }
                ],
                "borrowers": [{"leaf": "root.a.1", "resource": "cpu", "over": "5"}],
                "spared": [
                    {
                        "pod": "namespace1/nginx1-w",
                        "why": "PodDisruptionBudget namespace1/web allows 0",
                    }
                ],
            }
        ],
        "nodes": [],
        "violations": [],
    }


def test_jobs_returned_pods_nodes_and_violations() -> None:
    job = Workload("Job", "batch/v1", "ns", "train", "uid-job", pods=4)
    plan = QuotaPlan(
        evict=(
            QuotaEviction(
                QuotaPod("ns", "train-0", "u"),
                "a",
                "b/p",
                method=EvictionMethod.SUSPEND,
                workload=job,
                frees={"memory": 16 << 30},
            ),
        ),
        waiting=(QuotaWaiting("ns/train", "a", (), Reason.OVER_MAX, "why", workload=job),),
        returned=(
            QuotaReturn(QuotaPod("ns", "lost", "l"), "a"),
            QuotaReturn(QuotaPod("ns", "bare", "b"), "a", is_event_only=True),
        ),
        resume=(QuotaResume(job, "a"),),
        nodes=(
            QuotaNodeUse(
                "a",
                ("ns",),
                (),
                used={"cpu": 500, "nvidia.com/gpu": 2},
                firm_used={"cpu": 500},
                waiting_units=1,
                waiting_pods=4,
            ),
        ),
        violations=(
            Violation("root", "BadShape", "bad", stops=True),
            Violation("a", "AttributeNotEnforced", "kept", is_error=False),
        ),
    )

    reported = render_plan(plan)

    assert reported["evict"][0]["how"] == "suspend"
    assert reported["evict"][0]["frees"] == {"memory": "16Gi"}
    assert reported["waiting"][0]["pods"] == 4, "a suspended job waits without pods"
    assert [(each["pod"], each["how"]) for each in reported["return"]] == [
        ("lost", "delete"),
        ("bare", "tell"),
    ]
    assert reported["resume"] == [
        {
            "namespace": "ns",
            "kind": "Job",
            "name": "train",
            "uid": "uid-job",
            "leaf": "a",
            "pods": 0,
        }
    ]
    assert reported["nodes"] == [
        {
            "name": "a",
            "namespaces": ["ns"],
            "children": [],
            "waiting": {"units": 1, "pods": 4},
            "used": {"cpu": "500m", "nvidia.com/gpu": "2"},
            "request": {},
            "guaranteed": {},
            "borrowed": {},
            "claimed": {},
            "lost": {},
            "nonPreemptibleUsed": {"cpu": "500m"},
            "nonPreemptibleRequest": {},
        }
    ]
    assert reported["violations"] == [
        {"path": "root", "code": "BadShape", "message": "bad", "level": "error"},
        {"path": "a", "code": "AttributeNotEnforced", "message": "kept", "level": "warning"},
    ]
