"""`fairlead quota doctor`: for each requirement of quota whether it is met, failed with a hint, or
not checked.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.command import Printed, run_command
from tests.cli.quota.demo import demo, demo_tree

from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.setup import BuiltInQuota, QuotaSetup
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source, SourceState

WELL = QuotaSetup(holder="controller-1", renewed_at=-3.0, lease_seconds=15, ready=2, release="")
BROKEN = {
    "injector": {"missing": ("MutatingAdmissionPolicy/fairlead-quota-gate",)},
    "guard": {"missing": ("ValidatingAdmissionPolicyBinding/fairlead-quota-guard",)},
    "controller": {"ready": None, "holder": ""},
    "rights": {"denied": ("patch pods",)},
}
"""A fault of each check whose objects an installation writes."""
LEAVES = {
    "namespace1": "root.a.1",
    "namespace2": "root.a.2",
    "namespace3": "root.b.1",
    "namespace4": "root.b.2",
}


def enforced(name: str, leaf: str) -> Namespace:
    return Namespace(name, name, {"fairlead.io/quota": "enforced"}, {"fairlead.io/leaf": leaf})


def cluster(*more: Namespace, **labels: Namespace) -> ClusterSnapshot:
    spaces = {name: enforced(name, leaf) for name, leaf in LEAVES.items()} | labels
    sources = {name: Source(name) for name in ("elasticquotatrees", "namespaces")}
    return replace(
        demo(), namespaces=(*spaces.values(), Namespace("default"), *more), sources=sources
    )


def doctor(
    setup: QuotaSetup | BuiltInQuota | None = WELL, snapshot: ClusterSnapshot | None = None
) -> Printed:
    return run_command("quota doctor", snapshot or cluster(), "fairlead", setup=setup)


def test_all_is_well() -> None:
    printed = doctor()
    assert printed.status == 0
    assert printed.out == (
        "STATE  CHECK       FOUND\n"
        "ok     definition  ElasticQuotaTree is served\n"
        "ok     max         no node uses more than its max\n"
        "ok     tree        4 leaves with 4 namespaces\n"
        "ok     labels      4 namespaces are enforced\n"
        "ok     injector    MutatingAdmissionPolicy and its binding exist\n"
        "ok     guard       ValidatingAdmissionPolicy and its binding exist\n"
        "ok     controller  2 ready\n"
        "ok     lease       held by controller-1, renewed 3 s ago\n"
        "ok     rights      the controller has all rights that it needs\n"
    )


def test_a_leaf_above_a_lowered_max_is_bad() -> None:
    snapshot = cluster()
    tree = snapshot.quota_tree
    assert tree is not None and tree.root is not None
    side = tree.root.children[0]
    low = replace(side.children[0], max={"cpu": 10_000})
    root = replace(
        tree.root,
        children=(replace(side, children=(low, *side.children[1:])), *tree.root.children[1:]),
    )
    printed = doctor(snapshot=replace(snapshot, quota_tree=replace(tree, root=root), quota=root))
    assert printed.status == 1
    found = next(line for line in printed.out.splitlines() if line.startswith("BAD"))
    assert (
        found.split(None, 2)[:2] == ["BAD", "max"]
        and "root.a.1: uses 15 cpu, more than its max 10 (pods namespace1/" in found
    )
    assert "max: raise its max" in printed.out


@pytest.mark.parametrize(
    ("change", "found", "fix"),
    [
        (
            {"missing": ("MutatingAdmissionPolicy/fairlead-quota-gate",)},
            "injector    MutatingAdmissionPolicy/fairlead-quota-gate: not found",
            "injector: `fairlead upgrade` writes it again",
        ),
        (
            {"missing": ("ValidatingAdmissionPolicyBinding/fairlead-quota-guard",)},
            "guard       ValidatingAdmissionPolicyBinding/fairlead-quota-guard: not found",
            "guard: `fairlead upgrade` writes it again",
        ),
        (
            {"ready": 0, "holder": ""},
            "controller  none is ready",
            "controller: `kubectl describe pods -n fairlead-system",
        ),
        (
            {"ready": None, "holder": ""},
            "controller  Deployment fairlead-system/fairlead-quota-controller does not exist",
            "controller: `fairlead upgrade` writes it again",
        ),
        (
            {"holder": ""},
            "lease       no process holds fairlead-quota",
            "lease: a running controller acquires it",
        ),
        (
            {"renewed_at": -16.0},
            "lease       controller-1 released it 16 s ago",
            "lease: a running controller acquires it",
        ),
        (
            {"denied": ("patch pods", "create pods/eviction")},
            "rights      the controller is not allowed to patch pods, create pods/eviction",
            "rights: `fairlead upgrade` writes it again",
        ),
    ],
)
def test_what_is_bad_comes_with_what_mends_it(change: dict[str, Any], found: str, fix: str) -> None:
    printed = doctor(replace(WELL, **change))
    assert printed.status == 1
    assert f"BAD    {found}\n" in printed.out
    assert f"\n{fix}" in printed.out


@pytest.mark.parametrize("check", [*BROKEN, "definition"])
@pytest.mark.parametrize(
    ("installed", "fix"),
    [
        ({"release": ""}, "`fairlead upgrade` writes it again"),
        ({"release": "gpus"}, "`helm upgrade gpus` with the same values"),
        ({"release": "", "is_part": False}, "`fairlead upgrade --set parts.quota=true` adds quota"),
        (
            {"release": "gpus", "is_part": False},
            "`helm upgrade gpus` with the same values and `--set parts.quota=true` adds quota",
        ),
        ({"release": None}, "`fairlead install` installs it"),
    ],
    ids=["installed", "by Helm", "without quota", "by Helm, without quota", "not installed"],
)
def test_the_fix_keeps_the_image_the_namespace_and_the_owner_of_an_installation(
    check: str, installed: dict[str, Any], fix: str
) -> None:
    """`kubectl apply` of the files for a registry of one's own would change all of these."""
    snapshot = cluster()
    if check == "definition":
        gone = Source("elasticquotatrees", SourceState.MISSING, "why")
        sources = {**snapshot.sources, "elasticquotatrees": gone}
        snapshot = replace(snapshot, quota=None, quota_tree=None, sources=sources)
    printed = doctor(replace(WELL, **BROKEN.get(check, {}), **installed), snapshot)
    [line] = [each for each in printed.out.splitlines() if each.startswith(f"{check}: ")]
    assert line.startswith(f"{check}: {fix}")
    assert ("kubectl apply -f deploy/" in line) == (installed["release"] is None)


def test_a_webhook_stands_for_a_policy_and_a_controller_may_run_elsewhere() -> None:
    missing = (
        "MutatingAdmissionPolicy/fairlead-quota-gate",
        "MutatingAdmissionPolicyBinding/fairlead-quota-gate",
    )
    printed = doctor(
        replace(
            WELL,
            missing=missing,
            webhooks=("MutatingWebhookConfiguration/fairlead-quota",),
            ready=None,
        )
    )
    assert printed.status == 0
    assert (
        "injector    MutatingWebhookConfiguration/fairlead-quota in the place of a policy"
    ) in printed.out
    assert "controller  controller-1 is active; no pod of its Deployment is ready" in printed.out


def test_what_may_not_be_asked_is_neither_ok_nor_bad() -> None:
    printed = doctor(
        replace(
            WELL,
            unasked={
                "rights": "you may not ask",
                "Lease": "forbidden",
                "ValidatingAdmissionPolicy/x": "no",
            },
        )
    )
    assert printed.status == 0
    for line in (
        "?      rights      you may not ask",
        "?      lease       forbidden",
        "?      guard       no",
    ):
        assert line in printed.out


def test_labels_that_do_not_follow_the_tree() -> None:
    printed = doctor(
        snapshot=cluster(
            enforced("old", "root.a.9"),
            namespace1=Namespace("namespace1"),
            namespace2=enforced("namespace2", "root.b.2"),
        )
    )
    assert printed.status == 1
    assert (
        "BAD    labels      namespace1 is not enforced as root.a.1, namespace2 is not "
        "enforced as root.a.2, "
        "old is on no leaf but is still enforced\n"
    ) in printed.out


def test_trees_that_are_absent_not_sound_or_not_defined() -> None:
    def one(state: SourceState) -> dict[str, Source]:
        return {"elasticquotatrees": Source("elasticquotatrees", state, "why")}

    none = replace(cluster(), quota=None, quota_tree=None)
    assert "BAD    tree        there is none\n" in doctor(snapshot=none).out
    assert (
        "BAD    definition  the cluster serves no ElasticQuotaTree\n"
        in doctor(snapshot=replace(none, sources=one(SourceState.MISSING))).out
    )
    assert (
        "?      tree        why\n"
        in doctor(snapshot=replace(none, sources=one(SourceState.FORBIDDEN))).out
    )
    misnamed = replace(demo_tree(), name="other")
    printed = doctor(snapshot=replace(cluster(), quota_tree=misnamed))
    assert "BAD    tree        NotTheTree: " in printed.out


def test_a_snapshot_is_distinguished_from_a_cluster_where_nothing_is_installed() -> None:
    printed = doctor(None)
    assert printed.status == 0
    assert printed.out.count("not available in a snapshot or the embedded cluster") == 5


LAPTOP = BuiltInQuota("namespace1", has_gate=True, is_guarded=True)


def on_laptop(setup: BuiltInQuota = LAPTOP, observed: int | None = 1) -> Printed:
    snapshot = cluster()
    assert snapshot.quota_tree is not None
    status = {} if observed is None else {"observedGeneration": observed}
    return doctor(setup, replace(snapshot, quota_tree=replace(snapshot.quota_tree, status=status)))


def test_a_laptop_answers_all_checks() -> None:
    printed = on_laptop()
    assert printed.status == 0
    assert printed.out.endswith(
        "ok     injector    a new pod in namespace1 gets the quota gate (tried)\n"
        "ok     guard       a new pod in namespace1 that names another leaf is refused (tried)\n"
        "ok     controller  part of the laptop; it follows the tree's generation 1\n"
        "ok     lease       not needed: the laptop has one controller, which is part of it\n"
        "ok     rights      not needed: the laptop's controller writes without asking for rights\n"
    )
    assert "?" not in printed.out


@pytest.mark.parametrize(
    ("setup", "observed", "found"),
    [
        (
            replace(LAPTOP, has_gate=False),
            1,
            "injector    a new pod in namespace1 gets no quota gate (tried)",
        ),
        (
            replace(LAPTOP, is_guarded=False),
            1,
            "guard       a new pod in namespace1 may name another leaf (tried)",
        ),
        (
            LAPTOP,
            0,
            "controller  part of the laptop; it follows the tree's generation 0, which is 1 now",
        ),
        (LAPTOP, None, "controller  part of the laptop; it has not read the tree yet"),
    ],
)
def test_what_a_laptop_does_wrong_is_bad(
    setup: BuiltInQuota, observed: int | None, found: str
) -> None:
    printed = on_laptop(setup, observed)
    assert printed.status == 1
    assert f"BAD    {found}\n" in printed.out
    assert f"\n{found.split()[0]}: " in printed.out


def test_a_laptop_where_nothing_may_be_tried_gives_the_reason() -> None:
    printed = on_laptop(BuiltInQuota("namespace1", unasked="pods is forbidden"))
    assert printed.status == 0
    assert (
        "?      injector    pods is forbidden\n?      guard       pods is forbidden\n"
    ) in printed.out
