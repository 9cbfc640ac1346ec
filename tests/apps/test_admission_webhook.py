"""The admission webhook answers with the results of the rules, and refuses bodies that are not an
AdmissionReview.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.asgi import ask as send
from tests.kube.admission_cases import ASKED, ATTEMPTS, SENT, Attempt, Object, result

from fairlead.apps.admission_webhook import BODY_BYTES_MAX, webhook_app
from fairlead.apps.questions.quota_questions import QuotaQuestions
from fairlead.errors import OutsideError
from fairlead.model.installation import OwnAccounts
from fairlead.model.pod import Container, Pod
from fairlead.wire.kube.admission_review import parse_review

APP = webhook_app()
AS_JSON = {"content-type": "application/json; charset=utf-8"}
RESOURCES = {
    "status": ("UPDATE", "pods", "status"),
    "binding": ("CREATE", "pods", "binding"),
    "bindings": ("CREATE", "bindings", None),
}


async def ask(path: str, app: Starlette = APP, **request: Any) -> Object:
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u", **request},
    }
    status, answer = await send(app, "POST", path, json.dumps(review).encode(), AS_JSON)
    assert status == 200, answer
    response: Object = answer["response"]
    assert response["uid"] == "u"
    return response


def asked(
    operation: str, resource: str = "pods", sub: str | None = None, user: str = "alice", **more: Any
) -> Object:
    return {
        "operation": operation,
        "resource": {"resource": resource},
        "subResource": sub,
        "userInfo": {"username": user},
        **more,
    }


@pytest.mark.parametrize("case", SENT)
async def test_new_pods_are_sent_where_the_rules_point(case: str) -> None:
    spec, scheduler = SENT[case]
    spec = {"schedulerName": "default-scheduler", **spec}
    response = await ask(
        "/scheduler", **asked("CREATE", object={"metadata": {"name": "p"}, "spec": spec})
    )
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    sent = {**spec, **{each["path"].removeprefix("/spec/"): each["value"] for each in patch}}
    assert (response["allowed"], sent["schedulerName"]) == (True, scheduler)
    assert bool(patch) == (scheduler != spec["schedulerName"])


@pytest.mark.parametrize("case", ATTEMPTS)
async def test_writers_are_refused_by_the_rules(case: str) -> None:
    attempt: Attempt = ATTEMPTS[case]
    operation, resource, sub = RESOURCES.get(
        attempt.how, ("CREATE" if attempt.how == "create" else "UPDATE", "pods", None)
    )
    old = {"metadata": {"annotations": attempt.before}} if operation == "UPDATE" else None
    new = {"metadata": {"annotations": result(attempt)}}
    response = await ask(
        "/grants", **asked(operation, resource, sub, attempt.user, object=new, oldObject=old)
    )
    assert response["allowed"] == (not attempt.refused)
    if attempt.refused:
        message = f"only Fairlead writes the annotation {attempt.refused}"
        assert response["status"] == {"code": 403, "reason": "Forbidden", "message": message}


ELSEWHERE = ("one", "two")
"""Namespaces of an installation that are not the default."""


@pytest.mark.parametrize(
    ("user", "grants", "quota"),
    [
        ("system:serviceaccount:one:fairlead-scheduler", True, True),
        ("system:serviceaccount:two:fairlead-gpushare-extender", True, True),
        ("system:serviceaccount:two:fairlead-node-agent", True, False),
        ("system:serviceaccount:one:fairlead-quota-controller", False, True),
        ("system:serviceaccount:fairlead-system:fairlead-scheduler", False, False),
        ("system:serviceaccount:fairlead-nodes:fairlead-node-agent", False, False),
        ("system:serviceaccount:one:fairlead-node-agent", False, False),
        ("system:serviceaccount:one:default", False, False),
    ],
)
async def test_in_other_namespaces_the_accounts_of_these_are_its_own(
    user: str, grants: bool, quota: bool
) -> None:
    app = webhook_app(own=OwnAccounts(*ELSEWHERE))
    for path, key, may in (
        ("/grants", "ALIYUN_COM_GPU_MEM_IDX", grants),
        ("/quota-guard", "fairlead.io/gpu-retry", quota),
    ):
        old, new = ({"metadata": {"annotations": {key: value}}} for value in ("0", "1"))
        change = asked("UPDATE", user=user, object=new, oldObject=old)
        assert (await ask(path, app, **change))["allowed"] is may, path
    gated = {"metadata": {}, "spec": {"schedulingGates": [{"name": "fairlead.io/quota"}]}}
    opened = asked("UPDATE", user=user, object={"metadata": {}, "spec": {}}, oldObject=gated)
    assert (await ask("/quota-guard", app, **opened))["allowed"] is ("quota-controller" in user)


@pytest.mark.parametrize("namespace", ELSEWHERE)
async def test_a_tree_does_not_charge_fairleads_own_namespaces(namespace: str) -> None:
    app = webhook_app(Busy(), own=OwnAccounts(*ELSEWHERE))  # type: ignore[arg-type]
    root = {"name": "r", "children": [{"name": "r.a", "namespaces": [namespace]}]}
    answer = await ask(
        "/quota-tree", app, **asked("CREATE", "elasticquotatrees", object=tree(root))
    )
    assert not answer["allowed"]
    sentence = f"r.a: namespace {namespace} is one of Fairlead's own and takes no quota"
    assert sentence in answer["status"]["message"]


@pytest.mark.parametrize("case", ASKED)
async def test_pods_that_no_node_can_run_are_refused_by_the_rules(case: str) -> None:
    asking = ASKED[case]
    written = {
        "metadata": {"name": "p", "labels": asking.labels, "annotations": asking.annotations},
        "spec": asking.spec,
    }
    response = await ask("/asks", **asked("CREATE", object=written))
    assert response["allowed"] == (not asking.fault)
    if asking.fault:
        assert response["status"] == {
            "code": 422,
            "reason": "Invalid",
            "message": f"no node can run this pod: {asking.fault}",
        }
    assert (await ask("/asks", **asked("UPDATE", object=written, oldObject=written)))["allowed"]


async def test_what_is_deleted_is_left_to_the_user_that_deletes_it() -> None:
    old = {"metadata": {"annotations": {"ALIYUN_COM_GPU_MEM_IDX": "0"}}}
    assert (await ask("/grants", **asked("DELETE", object=None, oldObject=old)))["allowed"]


@pytest.mark.parametrize(
    ("operation", "sub"), [("UPDATE", None), ("CREATE", "binding"), ("UPDATE", "status")]
)
async def test_only_new_pods_are_sent_to_a_scheduler(operation: str, sub: str | None) -> None:
    spec = {"containers": [{"name": "a", "resources": {"limits": {"aliyun.com/gpu-mem": "4"}}}]}
    assert "patch" not in await ask(
        "/scheduler", **asked(operation, sub=sub, object={"metadata": {}, "spec": spec})
    )


@pytest.mark.parametrize("path", ["/scheduler", "/asks"])
async def test_a_pod_that_could_not_be_read_is_refused_with_the_reason(path: str) -> None:
    spec = {"containers": [{"name": "a", "resources": {"limits": {"aliyun.com/gpu-mem": "much"}}}]}
    response = await ask(path, **asked("CREATE", object={"metadata": {}, "spec": spec}))
    assert (response["allowed"], response["status"]["code"]) == (False, 400)
    assert "quantity `much` is not a Kubernetes quantity" in response["status"]["message"]


@pytest.mark.parametrize("path", ["/scheduler", "/grants", "/asks"])
async def test_bad_input_gets_a_sentence(path: str) -> None:
    for body, reported in (
        (b"{", "no AdmissionReview: Input data was truncated"),
        (b"{}", "is not admission.k8s.io/v1 AdmissionReview"),
    ):
        status, answer = await send(APP, "POST", path, body, AS_JSON)
        assert (status, reported in answer) == (400, True), answer
    assert (await send(APP, "POST", path, b"{}"))[0] == 415
    assert (await send(APP, "POST", path, b" " * (BODY_BYTES_MAX + 1), AS_JSON))[0] == 413
    assert (await send(APP, "GET", path))[0] == 405


async def test_probes_are_answered() -> None:
    assert [
        (await send(APP, "GET", path))[0] for path in ("/healthz", "/readyz", "/elsewhere")
    ] == [200, 200, 404]


def nested(levels: int, name: str = "n") -> Object:
    node: Object = {"name": f"{name}{levels}"}
    for level in range(levels - 1, 0, -1):
        node = {"name": f"{name}{level}", "children": [node]}
    return node


def tree(root: Object, name: str = "elasticquotatree") -> Object:
    return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"root": root}}


BROAD = {f"r{i}": 1 for i in range(1500)}
TOO_LARGE = {
    "nodes": (
        {"name": "r", "children": [{"name": f"n{i}"} for i in range(30_000)]},
        "more than 25000 nodes",
    ),
    "namespaces": (
        {"name": "r", "children": [{"name": "x", "namespaces": ["a"] * 300_000}]},
        "more than 250000 namespaces,",
    ),
    "a name": (
        {"name": "x" * 200_000, "children": [1] * 50_000},
        "a name has 200000 characters, and 1024 are allowed",
    ),
    "paths": (
        {"name": "r", "children": [nested(240, "x" * 1000)] * 5},
        "the paths of the nodes have more than 16000000",
    ),
    "bytes": (
        {"name": "r", "attributes": {f"a{i}": "x" * 1000 for i in range(2200)}},
        "and 2097152 are allowed",
    ),
    "levels": (nested(251), "lies deeper than 250 levels"),
    "unknown resources": (
        {
            "name": "r",
            "min": BROAD,
            "max": BROAD,
            "children": [{"name": f"c{i}", "min": {"x": 1}} for i in range(8000)],
        },
        (
            "names x, which r does not; it names r0, r1, r10, r100, r1000, and 1495 more; and "
            "7951 more"
        ),
    ),
}


class NoCluster:
    """An API that must not be called."""

    async def list_namespaces(self) -> frozenset[str]:
        return frozenset()

    async def list_pods(self, namespace: str) -> list[Any]:
        return []


@pytest.mark.parametrize("case", TOO_LARGE)
async def test_a_tree_of_any_size_is_judged_in_time_and_probes_are_answered_beside_it(
    case: str,
) -> None:
    """The webhook has 2 s for the rules; a liveness probe has one. Processor time is measured, so
    other work on the machine does not count.
    """
    root, reported = TOO_LARGE[case]
    app = webhook_app(NoCluster())  # type: ignore[arg-type]
    request = {"uid": "u", **asked("CREATE", "elasticquotatrees", object=tree(root))}
    body = json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()
    began, probing = time.process_time(), time.thread_time()
    judged = asyncio.create_task(send(app, "POST", "/quota-tree", body, AS_JSON))
    slowest, answered = 0.0, 0
    while not judged.done():
        before = time.thread_time()
        assert (await send(app, "GET", "/healthz"))[0] == 200
        slowest, answered = max(slowest, time.thread_time() - before), answered + 1
    _, answer = await judged
    assert not answer["response"]["allowed"]
    assert reported in answer["response"]["status"]["message"]
    assert len(answer["response"]["status"]["message"]) < 200_000
    assert (time.process_time() - began) - (time.thread_time() - probing) < 2
    assert slowest < 1
    assert answered > 10 or case != "unknown resources", (
        "it takes a third of a second, in a thread beside the probes"
    )


@pytest.mark.parametrize(
    "body",
    [
        tree(nested(3), "mine"),
        tree(TOO_LARGE["nodes"][0], "x" * 100_000),
        {"spec": {"root": nested(90)}},
    ],
)
async def test_a_tree_under_another_name_is_refused_before_it_is_judged(body: Object) -> None:
    """The tree has other faults as well, and this webhook has no cluster to compare it with."""
    response = await ask("/quota-tree", **asked("CREATE", "elasticquotatrees", object=body))
    assert response["status"]["message"].endswith(
        "the one tree of a cluster is kube-system/elasticquotatree"
    )
    assert len(response["status"]["message"]) < 500
    assert (await ask("/quota-tree", **asked("DELETE", "elasticquotatrees", oldObject=body)))[
        "allowed"
    ]


class Busy(NoCluster):
    """A pod of 3 cores runs in the namespace `a`. `is_slow`: a list of all pods does not end."""

    def __init__(self, away: str = "", *, is_slow: bool = False) -> None:
        self.away, self.is_slow = away, is_slow

    async def list_unfinished_pods(self) -> list[Pod]:
        if self.away:
            raise OutsideError("the API server", self.away)
        if self.is_slow:
            await asyncio.Event().wait()
        return [
            Pod(
                "a",
                "p",
                "u",
                phase="Running",
                node="n",
                containers=(Container("main", requests={"cpu": 3000}),),
            )
        ]


async def warned(api: Busy, most: int) -> list[str]:
    """The warnings about current use when a tree is written whose one leaf has this max."""
    bounds = {"cpu": most}
    root = {
        "name": "r",
        "min": bounds,
        "max": bounds,
        "children": [{"name": "r.a", "min": bounds, "max": bounds, "namespaces": ["a"]}],
    }
    request = {
        "uid": "u",
        **asked("UPDATE", "elasticquotatrees", object=tree(root), oldObject=tree(root)),
    }
    body = json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()
    answer = json.loads(await QuotaQuestions(api, use_seconds=0.05).tree(parse_review(body)))[
        "response"
    ]  # type: ignore[arg-type]
    assert answer["allowed"], answer
    return [each for each in answer.get("warnings", []) if not each.startswith("NoSuchNamespace")]


async def test_bounds_under_what_is_used_are_warned_of() -> None:
    reported = await warned(Busy(), 1)
    assert {each.partition(" (")[0] for each in reported} == {
        "OverMaxNow: r: uses 3 cpu, more than its max 1",
        "OverMaxNow: r.a: uses 3 cpu, more than its max 1",
        "UnderUse: r.a: pods that are not preemptible use 3 cpu, more than its min 1",
    }
    assert await warned(Busy(), 3) == []


async def test_a_tree_is_taken_where_it_is_not_known_what_is_used() -> None:
    """Without an answer the API server would refuse the tree after five seconds."""
    away = "connection refused"
    assert await warned(Busy(away), 1) == [
        (
            f"it is not known whether bounds are below what is used: {away}; ask `fairlead quota "
            "validate`"
        )
    ]
    (slow,) = await warned(Busy(is_slow=True), 1)
    assert "pods could not be read in 0.05 s" in slow


async def test_with_a_client_authority_only_clients_with_a_certificate_are_answered() -> None:
    app = webhook_app(asks_certificate=True)
    status, answer = await send(app, "POST", "/grants", b"{}", AS_JSON)
    assert (status, "show a client certificate" in answer) == (403, True)
    assert (await send(app, "GET", "/healthz"))[0] == 200
