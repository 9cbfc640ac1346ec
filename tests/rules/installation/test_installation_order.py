"""The order of writing and removing, what is left over, what is ready, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installation import Installation, Parts
from fairlead.rules.installation.downgrade import refuse_older
from fairlead.rules.installation.order import in_order, is_ready, left_over, removal_order
from fairlead.rules.installation.refusals import (
    refuse_definition,
    refuse_foreign_namespace,
    refuse_namespace,
    refuse_waiting,
)
from fairlead.wire.installation.components import installed_objects
from fairlead.wire.quota.tree_definition import quota_tree_definition

ALL = installed_objects(Installation(admission="webhooks")) + installed_objects(Installation())


def test_rights_and_limits_come_before_pods_and_webhooks_after_them() -> None:
    kinds = list(dict.fromkeys(each["kind"] for each in in_order(ALL)))
    assert kinds[:2] == ["Namespace", "CustomResourceDefinition"]
    for first, later in (
        ("ServiceAccount", "RoleBinding"),
        ("ClusterRole", "ClusterRoleBinding"),
        ("ValidatingAdmissionPolicyBinding", "Deployment"),
        ("ConfigMap", "Deployment"),
        ("DaemonSet", "MutatingWebhookConfiguration"),
    ):
        assert kinds.index(first) < kinds.index(later)


def test_admission_is_removed_first_and_the_namespace_last() -> None:
    kinds = [each.kind for each in removal_order(map(object_ref, ALL))]
    admission = [kind for kind in kinds if "Admission" in kind or "Webhook" in kind]
    assert kinds[: len(admission)] == admission
    assert kinds[-1] == "Namespace"


def test_left_over_is_what_the_next_installation_lacks_but_for_definitions() -> None:
    before = [object_ref(each) for each in installed_objects(Installation())]
    after = installed_objects(Installation(parts=Parts(quota=False)))
    left = left_over(before, after)
    assert (
        ObjectRef("apps/v1", "Deployment", "fairlead-quota-controller", "fairlead-system") in left
    )
    assert "CustomResourceDefinition" not in {each.kind for each in left}
    assert {each.name for each in left}.isdisjoint({"fairlead-system", "fairlead-console"})


def _hooks(*, authority: bool) -> dict[str, Any]:
    """A configuration of two webhooks, of which the first has its authority."""
    clients = ({"caBundle": "QQ=="}, {"caBundle": "QQ=="} if authority else {})
    hooks = [{"clientConfig": each} for each in clients]
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"generation": 2},
        "webhooks": hooks,
    }


def _workload(kind: str, generation: int, wanted: int, **status: Any) -> dict[str, Any]:
    meta = {"name": "x", "generation": generation}
    return {"kind": kind, "metadata": meta, "spec": {"replicas": wanted}, "status": status}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (_workload("Deployment", 2, 2), False),
        (
            _workload(
                "Deployment", 2, 2, observedGeneration=1, updatedReplicas=2, availableReplicas=2
            ),
            False,
        ),
        (
            _workload(
                "Deployment", 2, 2, observedGeneration=2, updatedReplicas=2, availableReplicas=1
            ),
            False,
        ),
        (
            _workload(
                "Deployment", 2, 2, observedGeneration=2, updatedReplicas=2, availableReplicas=2
            ),
            True,
        ),
        (
            # one new pod and one old pod are available, and one new pod is not
            _workload(
                "Deployment",
                2,
                2,
                observedGeneration=2,
                replicas=3,
                updatedReplicas=2,
                availableReplicas=2,
            ),
            False,
        ),
        (
            _workload(
                "DaemonSet",
                1,
                0,
                observedGeneration=1,
                desiredNumberScheduled=3,
                updatedNumberScheduled=3,
                numberAvailable=2,
            ),
            False,
        ),
        (
            _workload(
                "DaemonSet",
                1,
                0,
                observedGeneration=1,
                desiredNumberScheduled=3,
                updatedNumberScheduled=3,
                numberAvailable=3,
            ),
            True,
        ),
        (_workload("DaemonSet", 1, 0, observedGeneration=1), True),
        ({"kind": "CustomResourceDefinition", "status": {}}, False),
        (
            {
                "kind": "CustomResourceDefinition",
                "status": {"conditions": [{"type": "Established", "status": "True"}]},
            },
            True,
        ),
        ({"kind": "Role", "metadata": {"name": "x"}}, True),
        ({"kind": "MutatingAdmissionPolicyBinding", "metadata": {"generation": 1}}, True),
        (_hooks(authority=True), True),
        (_hooks(authority=False), False),
    ],
)
def test_ready_is_what_has_done_its_newest_spec(obj: Any, expected: bool) -> None:
    assert is_ready(obj) is expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"scope": "Cluster"}, "exists as Cluster `ElasticQuotaTree`, which does not fit"),
        ({"versions": []}, "exists and serves no `v1beta1`"),
        (
            {"versions": [{"name": "v1beta1", "served": True}]},
            "exists without the subresource `status`",
        ),
    ],
)
def test_a_foreign_definition_fits_or_is_refused(change: Any, reason: str) -> None:
    own = quota_tree_definition()
    refusal = refuse_definition({**own, "spec": {**own["spec"], **change}}, own)
    assert (refusal.reason if refusal else "").endswith(reason)
    assert (refusal is None) == (reason == "")


@pytest.mark.parametrize(
    ("installed", "offered", "is_refused"),
    [
        ("0.1.0", "0.1.0", False),
        ("0.9.0", "0.10.0", False),
        ("0.1.0", "0.9.0", False),
        ("0.10.0", "0.9.9", True),
    ],
)
def test_an_older_version_is_refused_and_versions_may_be_skipped(
    installed: str, offered: str, is_refused: bool
) -> None:
    assert (refuse_older(installed, offered) is not None) is is_refused


def test_a_namespace_that_ends_or_is_helms_is_refused() -> None:
    meta = {"name": "fairlead-system"}
    assert refuse_namespace(None) is None
    assert refuse_namespace({"metadata": meta}) is None
    assert refuse_namespace({"metadata": {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    helms = {**meta, "annotations": {"meta.helm.sh/release-name": "mine"}}
    refusal = refuse_namespace({"metadata": helms})
    assert refusal is not None
    assert "`mine`" in refusal.reason


def test_a_namespace_without_the_label_of_an_installation_is_not_taken_over() -> None:
    meta = {"name": "monitoring", "labels": {"team": "a"}}
    refusal = refuse_foreign_namespace({"metadata": meta})
    assert refusal is not None
    assert refusal.reason == "namespace `monitoring` exists, and was not made for Fairlead"
    own = {**meta, "labels": {"fairlead.io/installation": "system"}}
    assert refuse_foreign_namespace({"metadata": own}) is None


def test_five_of_the_waiting_pods_are_named() -> None:
    pods = [ObjectRef("v1", "Pod", f"p{number}", "team") for number in range(7)]
    refusal = refuse_waiting(pods, "gate")
    assert refusal is not None
    assert refusal.reason.startswith("7 pods wait")
    assert refusal.reason.endswith("team/p4 and 2 more")
