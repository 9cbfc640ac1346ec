"""How quota is installed, from a server that answers in the shapes of the API server."""

from __future__ import annotations

from typing import Any

from tests.edge.queried_cluster import cluster
from tests.edge.scripted import ReceivedRequest, Reply, status

from fairlead.edge.queries.quota_setup import read_built_in, read_setup
from fairlead.model.installation import Installation
from fairlead.model.quota.setup import BuiltInQuota
from fairlead.wire.installation.inventory import COMPLETE, Inventory, render_inventory
from fairlead.wire.installation.values import render_values

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
        asked: list[ReceivedRequest] = server.requests_of(REVIEWS)

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


ELSEWHERE = {
    LEASE.replace("fairlead-system", "gpus"): [Reply(HELD)],
    DEPLOYMENT.replace("fairlead-system", "gpus"): [Reply({"status": {"readyReplicas": 2}})],
}
"""Quota in the namespace `gpus`; `fairlead-system` has nothing of it."""
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def discovery(*resources: tuple[str, str]) -> Reply:
    rows = [
        {"resource": plural, "scope": "Namespaced", "verbs": ["create"]}
        | {"responseKind": {"group": "", "version": "v1", "kind": kind}}
        for plural, kind in resources
    ]
    core = {"metadata": {}, "versions": [{"version": "v1", "resources": rows}]}
    return Reply(
        {"kind": "APIGroupDiscoveryList", "items": [core] if rows else []},
        headers={"Content-Type": AGGREGATED},
    )


def spaces(**marks: dict[str, Any]) -> Reply:
    items = [{"metadata": {"name": name, "uid": name, **each}} for name, each in marks.items()]
    return Reply({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items})


def served(*maps: dict[str, Any]) -> dict[str, Any]:
    """A cluster that serves ConfigMaps, and these in `gpus`."""
    where = "/api/v1/namespaces/gpus/configmaps"
    return {
        "/api": [discovery(("configmaps", "ConfigMap"))],
        "/apis": [discovery()],
        **{f"{where}/{each['metadata']['name']}": [Reply(each)] for each in maps},
    }


def test_the_namespace_of_a_helm_release_is_the_one_that_helm_wrote() -> None:
    """Helm labels no namespace that it makes: of its two only that of the nodes has the label."""
    chosen = Installation(namespace="gpus", node_namespace="gpu-nodes")
    record = {
        "metadata": {"name": "fairlead-release", "namespace": "gpus"},
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {
            "release": "gpu-platform",
            "version": "0.1.0",
            "definitions": "true",
            "values": render_values(chosen),
        },
    }
    nodes = {
        "labels": {"fairlead.io/installation": "nodes"},
        "annotations": {"meta.helm.sh/release-namespace": "gpus"},
    }
    changes = {**served(record), **ELSEWHERE, SPACES: [spaces(**{"gpu-nodes": nodes})]}
    gone = [status(404, "NotFound", "not found")]
    with cluster(**script(**changes, **{LEASE: gone, DEPLOYMENT: gone})) as (server, api):
        setup = read_setup(api)
        asked = server.requests_of(REVIEWS)

    assert (setup.namespace, setup.holder, setup.ready) == ("gpus", "controller-1", 2)
    assert (setup.release, setup.is_part) == ("gpu-platform", True)
    assert {each.json()["spec"]["user"] for each in asked} == {
        "system:serviceaccount:gpus:fairlead-quota-controller"
    }


def test_the_namespace_of_an_installation_is_that_of_its_inventory() -> None:
    kept = Inventory("0.1.0", COMPLETE, "", (), "gpus")
    record = {"apiVersion": "v1", "kind": "ConfigMap", **render_inventory(kept)}
    labels = {"labels": {"fairlead.io/installation": "system"}}
    changes = {
        **served(record),
        **ELSEWHERE,
        SPACES: [spaces(gpus=labels, **{"fairlead-system": labels})],
    }
    with cluster(**script(**changes)) as (_, api):
        setup = read_setup(api)
    assert (setup.namespace, setup.release, setup.is_part) == ("gpus", "", False)


def test_a_user_that_may_not_read_the_record_finds_the_namespace_by_its_label() -> None:
    labels = {"labels": {"fairlead.io/installation": "system"}}
    no = [status(403, "Forbidden", "configmaps is forbidden")]
    changes = {**served(), **ELSEWHERE, SPACES: [spaces(gpus=labels)]}
    changes |= {
        f"/api/v1/namespaces/{space}/configmaps/fairlead-installation": no
        for space in ("gpus", "fairlead-system")
    }
    with cluster(**script(**changes)) as (_, api):
        setup = read_setup(api)
    assert (setup.namespace, setup.release, setup.ready) == ("gpus", None, 2)


def test_a_user_that_may_not_read_the_record_of_a_helm_release_finds_its_namespace() -> None:
    nodes = {
        "labels": {"fairlead.io/installation": "nodes"},
        "annotations": {"meta.helm.sh/release-namespace": "gpus"},
    }
    no = [status(403, "Forbidden", "configmaps is forbidden")]
    changes = {**served(), **ELSEWHERE, SPACES: [spaces(**{"gpu-nodes": nodes})]}
    changes["/api/v1/namespaces/gpus/configmaps/fairlead-release"] = no
    with cluster(**script(**changes)) as (_, api):
        setup = read_setup(api)
    assert (setup.namespace, setup.release, setup.ready) == ("gpus", None, 2)


def test_what_is_absent_or_not_allowed() -> None:
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


def test_what_may_not_be_asked_is_reported() -> None:
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
