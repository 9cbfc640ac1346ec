"""`fairlead uninstall` over a cluster in memory: what it removes, in which order, and what it
refuses; tests/kube/test_removal.py has a real one.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.apps.memory_target import KeptLease, MemoryTarget, Time, release_record, written_count

from fairlead.apps.installation.removal import Removable, Removal
from fairlead.errors import UserError
from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installation import Installation, Parts
from fairlead.rules.installation.order import left_over
from fairlead.wire.installation.components import account_limits, installed_objects
from fairlead.wire.installation.inventory import COMPLETE, Inventory, render_inventory
from fairlead.wire.quota.tree_definition import quota_tree_definition


def removal(
    cluster: MemoryTarget, lines: list[str] | None = None, lease: KeptLease | None = None
) -> Removal:
    time = Time()
    report = str if lines is None else lines.append
    return Removal(cluster, report, time.now, time.sleep, lease)


# --- beside a Helm release ------------------------------------------------------------------------


@pytest.mark.parametrize("with_data", [True, False], ids=["with data", "without data"])
def test_what_an_earlier_installation_left_is_not_removed_under_a_helm_release(
    with_data: bool,
) -> None:
    cluster = MemoryTarget()
    cluster.put(quota_tree_definition())
    marked = {"name": "team", "labels": {"fairlead.io/quota": "enforced"}}
    cluster.keep({"apiVersion": "v1", "kind": "Namespace", "metadata": marked})
    cluster.keep(release_record())
    with pytest.raises(UserError) as refused:
        removal(cluster).plan(with_data=with_data)
    assert refused.value.what == "Helm has installed Fairlead here: release `gpus`"
    assert refused.value.hint == "`helm uninstall gpus` removes it"


def test_after_the_release_is_gone_the_definition_that_is_left_can_be_removed() -> None:
    cluster = MemoryTarget()
    cluster.put(quota_tree_definition())
    with pytest.raises(UserError) as caught:
        removal(cluster).plan(with_data=False)
    assert (
        caught.value.what
        == "only CustomResourceDefinition elasticquotatrees.scheduling.sigs.k8s.io is left"
    )
    plan = removal(cluster).plan(with_data=True)
    assert plan.targets == (object_ref(quota_tree_definition()),)


# --- limits of Fairlead's own accounts ------------------------------------------------------------


LIMITS = {
    f"{kind} {name}"
    for name in (
        *("fairlead-node-agent-pods", "fairlead-node-agent-deletes", "fairlead-node-agent-nodes"),
        *("fairlead-scheduler-writes", "fairlead-quota-namespaces", "fairlead-quota-pods"),
        *("fairlead-quota-ends", "fairlead-quota-workloads"),
        *("fairlead-scheduler-term", "fairlead-quota-term"),
        "fairlead-renewal",
        *(f"fairlead-people-{what}" for what in ("bindings", "accounts", "users", "groups")),
        *(f"fairlead-console-{what}" for what in ("secrets", "accounts", "tokens")),
    )
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
}
"""What docs/concepts/security.md names as the limits of rights: no user is subject to them."""


def installed(*, by_helm: bool = False) -> MemoryTarget:
    chosen = Installation()
    cluster = MemoryTarget()
    objects = installed_objects(chosen)
    for each in objects:
        cluster.put(each)
    if by_helm:
        cluster.keep(release_record())
    else:
        refs = tuple(map(object_ref, objects))
        cluster.keep(render_inventory(Inventory("0.1.0", COMPLETE, "", refs)))
    cluster.writes.clear()
    return cluster


@pytest.mark.parametrize("by_helm", [False, True], ids=["installed", "by Helm"])
def test_the_limits_of_an_account_end_after_its_pods(by_helm: bool) -> None:
    cluster = installed(by_helm=by_helm)
    run = removal(cluster)
    plan = run.plan_for_helm() if by_helm else run.plan(with_data=True)
    assert {each.title for each in plan.targets} >= LIMITS
    titles = [title for _, title in _carried_out(run, plan, cluster)]
    assert titles == [each.title for each in plan.targets], "the dry run shows the same order"
    workloads = [n for n, each in enumerate(titles) if each.startswith(("Deployment", "DaemonSet"))]
    admission = [
        n
        for n, each in enumerate(titles)
        if ("Admission" in each or "Webhook" in each) and each not in LIMITS
    ]
    limits = [n for n, each in enumerate(titles) if each in LIMITS]
    rights = [n for n, each in enumerate(titles) if each.startswith("ClusterRoleBinding")]
    assert max(admission) < min(workloads) <= max(workloads) < min(limits)
    assert max(rights, default=0) < min(limits)


def test_the_volume_of_the_store_stays_with_its_namespace_until_data_is_deleted() -> None:
    """Also one that an upgrade without `store.size` has left."""
    cluster = installed()
    claim = ObjectRef("v1", "PersistentVolumeClaim", "fairlead-console", "fairlead-system")
    meta = {"name": claim.name, "namespace": claim.namespace}
    cluster.keep({"apiVersion": "v1", "kind": claim.kind, "metadata": meta})
    run = removal(cluster)
    plan = run.plan(with_data=False)
    removed = {each.title for each in plan.targets}
    assert "Namespace fairlead-nodes" in removed and "Namespace fairlead-system" not in removed
    assert removed >= {
        "ConfigMap fairlead-system/fairlead-installation",
        "Secret fairlead-system/fairlead-sign-in-key",
        "Secret fairlead-system/fairlead-admission-webhook",
    }
    _carried_out(run, plan, cluster)
    assert cluster.get(claim) is not None
    with pytest.raises(UserError) as nothing:
        run.plan(with_data=False)
    assert "fairlead-system" in nothing.value.what
    assert "Namespace fairlead-system" in {each.title for each in run.plan(with_data=True).targets}


# --- users ----------------------------------------------------------------------------------------

RBAC = "rbac.authorization.k8s.io/v1"


def labelled(api_version: str, kind: str, name: str, space: str, user: str = "bob") -> Any:
    meta = {"name": name, "labels": {"fairlead.io/user": user} if user else {}}
    place = {"namespace": space} if space else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**meta, **place}}


def user(name: str, *finalizers: str) -> Any:
    meta = {"name": name, "namespace": "kube-ai", "resourceVersion": "7"}
    return {
        "apiVersion": "fairlead.io/v1",
        "kind": "User",
        "metadata": {**meta, "finalizers": list(finalizers)},
        "spec": {"userName": name, "userId": name, "apiRoles": ["researcher"]},
        "status": {"serviceAccount": {"name": name, "namespace": "kube-ai"}},
    }


HELD = "fairlead.io/user"
MADE = [
    labelled(RBAC, "RoleBinding", "bob:team:fairlead-researcher", "team"),
    labelled(RBAC, "ClusterRoleBinding", "bob:clusterRole:fairlead-researcher-cluster", ""),
    labelled("v1", "ServiceAccount", "bob", "kube-ai"),
]
FOREIGN = [
    labelled(RBAC, "RoleBinding", "theirs", "team", ""),
    labelled("v1", "ServiceAccount", "default", "kube-ai", ""),
    labelled("v1", "ServiceAccount", "bob", "team"),
]


@pytest.mark.parametrize("by_helm", [False, True], ids=["installed", "by Helm"])
def test_users_lose_their_rights_when_no_controller_can_give_them_again(by_helm: bool) -> None:
    cluster = installed(by_helm=by_helm)
    for each in (*MADE, *FOREIGN, user("bob", HELD, "example.com/held"), user("eve")):
        cluster.keep(each)
    run = removal(cluster)
    plan = run.plan_for_helm() if by_helm else run.plan(with_data=False)
    titles = [title for _, title in _carried_out(run, plan, cluster)]
    made = [object_ref(each).title for each in MADE]
    assert [each for each in titles if each in made] == made, "an account after its bindings"
    stopped = titles.index("Deployment fairlead-system/fairlead-people-controller")
    assert all(titles.index(each) > stopped for each in made)
    for each in FOREIGN:
        assert object_ref(each).identity in cluster.objects
    bob, eve = (cluster.objects[object_ref(user(name)).identity] for name in ("bob", "eve"))
    assert bob["metadata"]["finalizers"] == ["example.com/held"]
    assert "status" not in bob and "status" not in eve
    assert "Namespace kube-ai" not in titles
    assert not [each for each in titles if each.startswith("CustomResourceDefinition")]
    if not by_helm:
        rights = titles.index("ClusterRole fairlead-researcher")
        assert all(titles.index(each) < rights for each in made)


def test_a_user_that_changes_meanwhile_is_read_again() -> None:
    cluster = installed()
    cluster.keep(user("bob", HELD))
    cluster.refusals = ["the object has been modified", ""]
    run = removal(cluster)
    _carried_out(run, run.plan(with_data=False), cluster)
    assert cluster.objects[object_ref(user("bob")).identity]["metadata"]["finalizers"] == []


def test_users_that_another_controller_holds_are_left_alone() -> None:
    """An installation without the part: its files were applied by hand."""
    chosen = Installation(parts=Parts(people=False))
    cluster = MemoryTarget()
    objects = installed_objects(chosen)
    for each in objects:
        cluster.put(each)
    refs = tuple(map(object_ref, objects))
    cluster.keep(render_inventory(Inventory("0.1.0", COMPLETE, "", refs)))
    for each in (*MADE, user("bob", HELD)):
        cluster.keep(each)
    run = removal(cluster)
    _carried_out(run, run.plan(with_data=True), cluster)
    assert all(object_ref(each).identity in cluster.objects for each in MADE)
    assert cluster.objects[object_ref(user("bob")).identity]["metadata"]["finalizers"] == [HELD]


# --- what does not end ----------------------------------------------------------------------------


def test_while_a_pod_does_not_end_the_limits_of_its_account_stay() -> None:
    cluster = installed()
    (agent,) = [each for each in cluster.objects if each[1:] == AGENT]
    cluster.held.add(agent)
    run = removal(cluster)
    plan = run.plan(with_data=True)
    with pytest.raises(UserError) as caught:
        run.carry_out(plan, is_releasing=False, seconds=5)
    assert caught.value.what == "still being deleted: DaemonSet fairlead-nodes/fairlead-node-agent"
    left = {f"{kind} {name}" for _, kind, _, name in cluster.objects}
    assert left >= LIMITS
    assert not [each for each in left if "Mutating" in each], "no user waits for admission"


AGENT = ("DaemonSet", "fairlead-nodes", "fairlead-node-agent")


def _carried_out(run: Removal, plan: Removable, cluster: MemoryTarget) -> list[tuple[str, str]]:
    run.carry_out(plan, is_releasing=False, seconds=5)
    return cluster.writes


def test_an_upgrade_without_a_part_ends_its_limits_last() -> None:
    before = list(map(object_ref, installed_objects(Installation())))
    after = installed_objects(Installation(parts=Parts(node_agent=False)))
    left = [each.title for each in left_over(before, after, account_limits())]
    last = [each for each in left if each in LIMITS]
    assert len(last) == 6
    assert left[-6:] == last


# --- the Lease of operations ----------------------------------------------------------------------


def used() -> MemoryTarget:
    """With every kind of write: removals, patches, gates that open, rights that end."""
    cluster = installed()
    cluster.gated = [ObjectRef("v1", "Pod", "p", "team")]
    marked = {"name": "team", "labels": {"fairlead.io/quota": "enforced"}}
    cluster.keep({"apiVersion": "v1", "kind": "Namespace", "metadata": marked})
    for each in (*MADE, user("bob", HELD)):
        cluster.keep(each)
    return cluster


def test_the_lease_is_checked_before_each_write() -> None:
    cluster = used()
    lease = KeptLease(cluster)
    run = removal(cluster, lease=lease)
    run.carry_out(run.plan(with_data=True), is_releasing=True, seconds=5)
    assert cluster.gated == [] and len(cluster.changes) >= 3
    assert set(lease.checked_at) >= set(range(written_count(cluster)))


def test_a_removal_without_its_lease_stops() -> None:
    cluster = used()
    run = removal(cluster, lease=KeptLease(cluster, lost_after=7))
    with pytest.raises(UserError) as stopped:
        run.carry_out(run.plan(with_data=True), is_releasing=True, seconds=5)
    assert stopped.value.what.startswith("the Lease of the installation was lost: ")
    assert written_count(cluster) == 7


def test_nothing_is_removed_where_another_program_changed_the_installation_meanwhile() -> None:
    cluster = used()
    refs = tuple(map(object_ref, installed_objects(Installation(parts=Parts(quota=False)))))
    other = render_inventory(Inventory("0.1.0", COMPLETE, "parts: {quota: false}", refs))
    run = removal(cluster, lease=KeptLease(cluster, taken=lambda: cluster.keep(other)))
    with pytest.raises(UserError) as refused:
        run.carry_out(run.plan(with_data=True), is_releasing=True, seconds=5)
    assert refused.value.what == (
        "another program changed the installation after this command had looked"
    )
    assert written_count(cluster) == 0


# --- what the API server goes on refusing ---------------------------------------------------------


def test_the_last_refusal_is_in_the_sentence_when_gates_do_not_open() -> None:
    cluster = installed()
    cluster.gated = [ObjectRef("v1", "Pod", "p", "team")]
    cluster.refusals = ["a policy is still in force", "spec: Invalid value: theirs"]
    run = removal(cluster)
    plan = run.plan(with_data=False)
    with pytest.raises(UserError) as refused:
        run.carry_out(plan, is_releasing=True, seconds=5)
    assert refused.value.what == (
        "1 pod or job still waits for quota; the API server refuses to let Pod team/p go: spec: "
        "Invalid value: theirs"
    )


def test_a_refusal_of_a_moment_is_tried_again() -> None:
    cluster = installed()
    cluster.gated = [ObjectRef("v1", "Pod", "p", "team")]
    cluster.refusals = ["a policy is still in force", ""]
    lines: list[str] = []
    run = removal(cluster, lines)
    run.carry_out(run.plan(with_data=False), is_releasing=True, seconds=5)
    assert "released pod team/p" in lines
    assert cluster.gated == []


def test_the_refusal_is_in_the_sentence_when_a_label_cannot_be_removed() -> None:
    cluster = installed()
    marked = {"name": "team", "labels": {"fairlead.io/quota": "enforced"}}
    cluster.keep({"apiVersion": "v1", "kind": "Namespace", "metadata": marked})
    cluster.refusals = ["labels of teams belong to the platform"]
    run = removal(cluster)
    with pytest.raises(UserError) as refused:
        run.carry_out(run.plan(with_data=True), is_releasing=False, seconds=5)
    assert refused.value.what == (
        "the API server refuses to remove what Fairlead wrote on Namespace team: labels of teams "
        "belong to the platform"
    )
