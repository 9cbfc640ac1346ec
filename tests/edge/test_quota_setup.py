"""How quota is installed, from a server that answers in the shapes of the API server."""

from __future__ import annotations

from typing import Any

from tests.edge.queried_cluster import cluster
from tests.edge.scripted import Reply, Seen, status

from fairlead.edge.queries.quota_setup import read_built_in, read_setup
from fairlead.model.quota.setup import BuiltInQuota

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
GATE, GATE_BINDING = (
    f"{ADMISSION}/mutatingadmissionpolicies/fairlead-quota-gate",
    f"{ADMISSION}/mutatingadmissionpolicybindings/fairlead-quota-gate",
)
GUARD = f"{ADMISSION}/validatingadmissionpolicies/fairlead-quota-guard"
GUARD_BINDING = f"{ADMISSION}/validatingadmissionpolicybindings/fairlead-quota-guard"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/fairlead-system/leases/fairlead-quota"
DEPLOYMENT = "/apis/apps/v1/namespaces/fairlead-system/deployments/fairlead-quota-controller"
SPACES = "/api/v1/namespaces"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
THERE = Reply({"metadata": {"name": "x"}})
HELD = {
    "spec": {
        "holderIdentity": "controller-1",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-05T08:00:00.250000Z",
    }
}
ALLOWED = Reply({"status": {"allowed": True}}, 201)


def hooks(*names: str) -> Reply:
    return Reply(
        {
            "kind": "List",
            "metadata": {"resourceVersion": "1"},
            "items": [{"metadata": {"name": each, "uid": each}} for each in names],
        }
    )


def script(**changes: Any) -> dict[str, Any]:
    return {
        SPACES: [hooks()],
        GATE: [THERE],
        GATE_BINDING: [THERE],
        GUARD: [THERE],
        GUARD_BINDING: [THERE],
        f"{ADMISSION}/mutatingwebhookconfigurations": [hooks("fairlead-quota", "other")],
        f"{ADMISSION}/validatingwebhookconfigurations": [hooks()],
        LEASE: [Reply(HELD)],
        DEPLOYMENT: [Reply({"status": {"readyReplicas": 2}})],
        REVIEWS: [ALLOWED] * 11,
    } | changes


def test_all_that_is_there_is_found() -> None:
    with cluster(**script()) as (server, api):
        setup = read_setup(api)
        asked: list[Seen] = server.requests_of(REVIEWS)

    assert (setup.missing, setup.denied, setup.unasked) == ((), (), {})
    assert (setup.holder, setup.renewed_at, setup.lease_seconds, setup.ready) == (
        "controller-1",
        1767600000.25,
        15,
        2,
    )
    assert setup.webhooks == ("MutatingWebhookConfiguration/fairlead-quota",)
    specs = [each.json()["spec"] for each in asked]
    assert {each["user"] for each in specs} == {
        "system:serviceaccount:fairlead-system:fairlead-quota-controller"
    }
    evict = {"verb": "create", "resource": "pods", "subresource": "eviction"}
    assert evict in [each["resourceAttributes"] for each in specs]


def test_what_is_not_there_or_not_allowed() -> None:
    gone = [status(404, "NotFound", "not found")]
    changes = {
        GATE: gone,
        GUARD_BINDING: gone,
        LEASE: gone,
        DEPLOYMENT: gone,
        REVIEWS: [Reply({"status": {"allowed": False}}, 201)] * 11,
    }
    with cluster(**script(**changes)) as (_, api):
        setup = read_setup(api)

    assert setup.missing == (
        "MutatingAdmissionPolicy/fairlead-quota-gate",
        "ValidatingAdmissionPolicyBinding/fairlead-quota-guard",
    )
    assert (setup.holder, setup.ready, len(setup.denied)) == ("", None, 11)
    assert "update leases.coordination.k8s.io in fairlead-system" in setup.denied


def test_what_may_not_be_asked_is_told() -> None:
    no = [status(403, "Forbidden", "you may not")] * 11
    with cluster(**script(**{LEASE: no, REVIEWS: no, GUARD: no})) as (_, api):
        setup = read_setup(api)

    assert setup.unasked == dict.fromkeys(
        ("ValidatingAdmissionPolicy/fairlead-quota-guard", "Lease", "rights"), "you may not"
    )
    assert not setup.missing


TRIED = "/api/v1/namespaces/team/pods"
NAMED = Reply(
    {
        "metadata": {"resourceVersion": "1"},
        "items": [{"metadata": {"name": "team", "labels": {"fairlead.io/quota": "enforced"}}}],
    }
)
GATED = Reply({"spec": {"schedulingGates": [{"name": "fairlead.io/quota"}]}}, 201)
GUARDED = status(
    403,
    "Forbidden",
    (
        'pods "x" is forbidden: ValidatingAdmissionPolicy '
        "'fairlead-quota-guard' denied request: no"
    ),
)


def test_built_in_quota_is_known_by_pods_that_are_tried() -> None:
    """No pod is created: both writes are dry runs, and the second names a leaf that is not its
    namespace's.
    """
    with cluster(**{SPACES: [NAMED], TRIED: [GATED, GUARDED]}) as (server, api):
        assert read_built_in(api) == BuiltInQuota("team", has_gate=True, is_guarded=True)
        first, second = server.requests_of(TRIED)
    assert all(each.query["dryRun"] == "All" for each in (first, second))
    assert "quota.scheduling.alibabacloud.com/name" in second.json()["metadata"]["labels"]
    with cluster(**{SPACES: [NAMED], TRIED: [Reply({"spec": {}}, 201), Reply({}, 201)]}) as (
        _,
        api,
    ):
        assert read_built_in(api) == BuiltInQuota("team", has_gate=False, is_guarded=False)
    with cluster(**{SPACES: [NAMED], TRIED: [GUARDED]}) as (_, api):
        assert read_built_in(api) == BuiltInQuota("team", has_gate=False, is_guarded=True), (
            "refused, since it has no gate"
        )


def test_built_in_quota_where_nothing_can_be_tried() -> None:
    no = status(403, "Forbidden", "pods is forbidden")
    with cluster(**{SPACES: [NAMED], TRIED: [no]}) as (_, api):
        assert read_built_in(api) == BuiltInQuota("team", unasked="pods is forbidden")
    with cluster(**{SPACES: [no]}) as (_, api):
        assert read_built_in(api) == BuiltInQuota(unasked="pods is forbidden")
    with cluster(**{SPACES: [Reply({"metadata": {"resourceVersion": "1"}, "items": []})]}) as (
        _,
        api,
    ):
        assert read_built_in(api).unasked == "no namespace is enforced, so no pod could be tried"
