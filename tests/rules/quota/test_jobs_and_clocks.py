"""Jobs that are suspended, gangs with surplus or late members, and changes that only the clock
causes.

See docs/spec/quota.md#units-and-gangs, docs/spec/quota.md#victims, docs/spec/quota.md#claims,
docs/spec/quota.md#non-preemptible-pods-and-caps, docs/spec/quota.md#cluster-nodes,
docs/spec/quota.md#timers, docs/spec/quota.md#changes-to-the-tree.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.keys import MAX_JOBS
from fairlead.model.quota.plan import EvictionMethod
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode, Violation
from fairlead.rules.quota.plan import plan_quota

ORDER = "of its pods the least important go first: lower priority, then not ready, then newer"


def pod(name: str, leaf: str = "a", gpus: int = 1, **more: Any) -> QuotaPod:
    return QuotaPod(leaf, name, f"uid-{name}", {"gpu": gpus}, **more)


def running(name: str, leaf: str = "a", gpus: int = 1, **more: Any) -> QuotaPod:
    return replace(
        pod(name, leaf, gpus), is_admitted=True, is_ready=True, admitted_at=1.0, node="n", **more
    )


def test_a_job_is_suspended_as_a_whole_and_resumed_by_itself() -> None:
    world = SmallWorld(tree("root[4]{a[0] b[4]}"))
    world.add_job("a", "train", 4)
    world.settle()
    world.add("b", 1, 1, owner="b")
    plan = world.step()
    assert {each.method for each in plan.evict} == {EvictionMethod.SUSPEND} and len(plan.evict) == 4
    assert {each.workload.name for each in plan.evict if each.workload} == {"train"}
    assert plan.evict[0].message == (
        "b/p001 takes back 1 of the 4 gpu guaranteed to b; a uses 4 of guaranteed 0; " + ORDER
    )
    world.settle()
    (row,) = plan_quota(world.state()).waiting
    assert (row.unit, row.pods, row.workload and row.workload.name) == ("a/train", (), "train")
    world.remove(lambda each: each.namespace != "b")
    assert [each.workload.name for each in world.step().resume] == ["train"]
    world.settle()
    assert world.running("a") == (4,)


def test_a_victim_gets_the_resource_that_is_taken_back() -> None:
    """Cpu is the first resource in every list, but there is enough of it; `b` lacks GPUs."""
    most = {"cpu": 1000, "gpu": 4}
    a = QuotaNode("a", "a", "root", {"cpu": 1, "gpu": 0}, most, ("a",))
    b = QuotaNode("b", "b", "root", {"cpu": 999, "gpu": 4}, most, ("b",))
    world = SmallWorld(QuotaNode("root", "root", "", most, most, children=(a, b)))
    world.add("a", 4, {"cpu": 10, "gpu": 1}, owner="a")
    world.settle()
    world.add("b", 1, {"cpu": 10, "gpu": 1}, owner="b")
    assert [each.message for each in world.step().evict] == [
        "b/p001 takes back 1 of the 4 gpu guaranteed to b; a uses 4 of guaranteed 0; " + ORDER
    ]


def test_a_job_that_its_owner_suspended_is_left_alone() -> None:
    job = Workload(
        "Job",
        "batch/v1",
        "a",
        "train",
        "u",
        can_suspend=True,
        is_suspended=True,
        request={"gpu": 1},
    )
    plan = plan_quota(QuotaState(tree("root[4]{a[4]}"), workloads={"u": job}))
    assert (plan.resume, plan.waiting) == ((), ())
    own = replace(job, suspended_for="b/p001")
    assert [
        each.workload
        for each in plan_quota(QuotaState(tree("root[4]{a[4]}"), workloads={"u": own})).resume
    ] == [own]


def test_members_beyond_a_gangs_size_are_evicted_one_by_one() -> None:
    world = SmallWorld(tree("root[4]{a[0] b[4]}"))
    world.add("a", 4, 1, gang="g", gang_size=2)
    world.settle()
    world.add("b", 1, 1)
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((3, 1), 1)


def test_a_gang_goes_with_its_surplus_when_the_surplus_does_not_help() -> None:
    """Members without a GPU are the first to go, but only members with a GPU free what is needed.
    All members go, because the rest could not run alone.
    """
    light = [running(f"light-{number}", gpus=0, gang="g", gang_size=3) for number in range(2)]
    heavy = [
        running(f"heavy-{number}", gpus=2, gang="g", gang_size=3, priority=10)
        for number in range(2)
    ]
    plan = plan_quota(
        QuotaState(tree("root[4]{a[0] b[4]}"), (*light, *heavy, pod("owner", "b", 4)))
    )
    assert sorted(each.pod.name for each in plan.evict) == [
        "heavy-0",
        "heavy-1",
        "light-0",
        "light-1",
    ]


def test_a_launcher_is_no_surplus_of_its_workers() -> None:
    job = Workload(
        "MPIJob",
        "",
        "a",
        "mpi",
        "u",
        can_suspend=True,
        pods=3,
        request={"gpu": 3},
        least=2,
        late={"gpu": 1},
        late_pods=1,
    )
    members = [
        running(name, gang="mpi", gang_size=2, owner="u")
        for name in ("launcher", "worker-0", "worker-1")
    ]
    plan = plan_quota(
        QuotaState(tree("root[3]{a[0] b[3]}"), (*members, pod("owner", "b")), workloads={"u": job})
    )
    assert [(each.pod.name, each.method) for each in plan.evict] == [
        (each.name, EvictionMethod.SUSPEND) for each in members
    ]


def test_room_is_kept_for_the_launcher_that_comes_later() -> None:
    job = Workload(
        "MPIJob",
        "",
        "a",
        "mpi",
        "u",
        can_suspend=True,
        pods=3,
        request={"gpu": 3},
        least=2,
        late={"gpu": 1},
        late_pods=1,
    )
    workers = [
        pod(f"worker-{number}", gang="mpi", gang_size=2, owner="u", created_at=1.0)
        for number in range(2)
    ]
    other = pod("other", created_at=5.0)
    state = QuotaState(tree("root[3]{a[3]}"), (*workers, other), workloads={"u": job}, now=10)
    assert [each.pod.name for each in plan_quota(state).admit] == ["worker-0", "worker-1"]
    run = [replace(each, is_admitted=True, node="n") for each in workers]
    assert plan_quota(replace(state, pods=(*run, other))).admit == ()
    launcher = pod("launcher", gang="mpi", gang_size=2, owner="u", created_at=9.0)
    assert [
        each.pod.name for each in plan_quota(replace(state, pods=(*run, other, launcher))).admit
    ] == ["launcher"]


def test_a_pod_that_does_not_stop_is_lost_after_five_minutes() -> None:
    stuck = running("stuck", gpus=4, is_stopping=True, stopping_at=100.0)
    state = QuotaState(tree("root[4]{a[4]}"), (stuck, pod("next", gpus=4)), now=399.0)
    assert plan_quota(state).admit == ()
    plan = plan_quota(replace(state, now=400.0))
    assert [each.pod.name for each in plan.admit] == ["next"]
    assert plan.nodes[0].lost == {"gpu": 4}


def test_a_pod_that_is_never_bound_returns_and_a_bare_one_is_reported() -> None:
    owned, bare = (
        replace(running(name), node="", owner=owner, is_refused=True)
        for name, owner in (("owned", "u"), ("bare", ""))
    )
    state = QuotaState(tree("root[4]{a[4]}"), (owned, bare, running("bound")), now=300.0)
    assert plan_quota(state).returned == ()
    reported = {
        each.pod.name: each.is_event_only for each in plan_quota(replace(state, now=301.0)).returned
    }
    assert reported == {"owned": False, "bare": True}


def test_no_pod_returns_where_no_scheduler_answers() -> None:
    """Since the pod was admitted, the scheduler has placed no pod and refused none. Deleting the
    pod would free nothing for others.
    """
    unbound = replace(running("unbound"), node="", owner="u", admitted_at=50.0)
    state = QuotaState(
        tree("root[9]{a[9]}"), (unbound, running("bound")), now=1000.0, scheduled_at=49.0
    )
    assert plan_quota(state).returned == ()
    placed = replace(state, scheduled_at=50.0)
    refused = replace(
        state,
        pods=(
            *state.pods,
            replace(unbound, name="other", uid="other", admitted_at=60.0, is_refused=True),
        ),
    )
    for answered in (placed, refused):
        assert "unbound" in [each.pod.name for each in plan_quota(answered).returned]


def test_of_a_job_as_many_pods_go_as_are_needed_and_come_back_one_by_one() -> None:
    world = SmallWorld(tree("root[4]{a[0] b[4]}"))
    world.add_job("a", "sweep", 4, kind="Job")
    world.settle()
    assert world.running("a") == (4,)
    world.add("b", 1, 1, owner="b")
    plan = world.step()
    assert [(each.method, each.workload and each.workload.name) for each in plan.evict] == [
        (EvictionMethod.LOWER, "sweep")
    ]
    world.add("b", 1, 1, owner="b")
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((2, 2), 2)
    assert [(row.unit, row.pods) for row in plan_quota(world.state()).waiting] == [
        ("a/sweep", ())
    ] * 2
    kept = next(each.key for each in world.pods.values() if each.namespace == "b")
    world.remove(lambda each: each.namespace != "b" or each.key == kept)
    assert [(each.workload.name, each.pods) for each in world.step().resume] == [("sweep", 1)]
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((3, 1), 2)


def test_the_first_of_a_job_to_go_is_the_one_its_controller_removes_first() -> None:
    """By quota's own order the newest pod would go first. The Job controller first removes a pod
    without a node, then a pod that is not ready.
    """
    job = Workload(
        "Job",
        "batch/v1",
        "a",
        "sweep",
        "u",
        can_suspend=True,
        can_lower=True,
        pods=3,
        parallelism=3,
        each={"gpu": 1},
    )
    ready = running("ready", owner="u", created_at=9.0, removal=(1.0, 2.0, 1.0, -9.0))
    starting = replace(
        running("starting", owner="u", created_at=5.0, removal=(1.0, 0.0, 0.0, -5.0)),
        is_ready=False,
    )
    placeless = replace(
        running("placeless", owner="u", created_at=1.0, removal=(0.0, 0.0, 0.0, -1.0)),
        node="",
        is_ready=False,
    )
    for number, names in (
        (1, ["placeless"]),
        (2, ["placeless", "starting"]),
        (3, ["placeless", "ready", "starting"]),
    ):
        pods = (ready, starting, placeless, pod("owner", "b", number))
        plan = plan_quota(QuotaState(tree("root[3]{a[0] b[3]}"), pods, workloads={"u": job}))
        assert sorted(each.pod.name for each in plan.evict) == names
    kept = replace(placeless, budgets=("a/web",))
    assert (
        plan_quota(
            QuotaState(
                tree("root[3]{a[0] b[3]}"),
                (ready, starting, kept, pod("owner", "b")),
                workloads={"u": job},
            )
        ).evict
        == ()
    )


def test_no_member_of_a_training_job_goes_alone_not_even_one_beyond_its_least() -> None:
    for kind in ("MPIJob", "TFJob", "PyTorchJob", "RayJob"):
        job = Workload(
            kind, "", "a", "train", "u", can_suspend=True, pods=4, request={"gpu": 4}, least=2
        )
        members = [
            running(f"worker-{number}", gang="train", gang_size=2, owner="u") for number in range(4)
        ]
        plan = plan_quota(
            QuotaState(
                tree("root[4]{a[0] b[4]}"), (*members, pod("owner", "b")), workloads={"u": job}
            )
        )
        assert [each.method for each in plan.evict] == [EvictionMethod.SUSPEND] * 4, kind


def test_surplus_of_a_gang_job_goes_by_lowering_it_and_the_gang_by_suspending_it() -> None:
    job = Workload(
        "Job",
        "",
        "a",
        "gang",
        "u",
        can_suspend=True,
        can_lower=True,
        is_gang=True,
        pods=4,
        parallelism=4,
        each={"gpu": 1},
    )
    members = [
        running(f"p{number}", gang="g", gang_size=2, owner="u", created_at=float(number))
        for number in range(4)
    ]
    for asked, how in (
        (1, {"p3": EvictionMethod.LOWER}),
        (2, {"p3": EvictionMethod.LOWER, "p2": EvictionMethod.LOWER}),
    ):
        state = QuotaState(
            tree("root[4]{a[0] b[4]}"), (*members, pod("owner", "b", asked)), workloads={"u": job}
        )
        assert {each.pod.name: each.method for each in plan_quota(state).evict} == how
    state = QuotaState(
        tree("root[4]{a[0] b[4]}"), (*members, pod("owner", "b", 3)), workloads={"u": job}
    )
    assert EvictionMethod.SUSPEND in {each.method for each in plan_quota(state).evict}


def test_a_long_grace_period_is_cut() -> None:
    root = tree("root[4]{a[0] b[4]}")
    for grace, given in ((7200.0, 300.0), (30.0, None), (None, None)):
        victim = running("victim", gpus=4, grace_seconds=grace)
        (eviction,) = plan_quota(QuotaState(root, (victim, pod("owner", "b", 4)))).evict
        assert (eviction.grace_seconds, eviction.frees) == (given, {"gpu": 4})


def test_as_many_jobs_and_no_more() -> None:
    root = tree("root[9]{a[9]}")
    bounded = replace(
        root, children=tuple(replace(leaf, max={MAX_JOBS: 2}) for leaf in root.children)
    )
    pods = [
        pod(f"{owner}-{number}", owner=owner, created_at=float(number))
        for owner in "xyz"
        for number in range(2)
    ]
    plan = plan_quota(QuotaState(bounded, tuple(pods)))
    assert (
        len({each.pod.owner for each in plan.admit}) == 2
        and len(plan.admit) == 4
        and not plan.evict
    )
    assert {(str(row.reason), row.message) for row in plan.waiting} == {
        ("OverMax", "a runs 2 of at most 2 jobs")
    }


def test_a_max_below_what_is_used_evicts_only_where_the_tree_allows_it() -> None:
    pods = tuple(running(f"p{number}", created_at=float(number)) for number in range(4))
    root = tree("root[9]{a[0/2] b[0]}")
    assert plan_quota(QuotaState(root, pods)).evict == ()
    drains = tree("root[9]{a[0/2] b[0]}", {"a": {"fairlead.io/drain-over-max": "true"}})
    plan = plan_quota(QuotaState(drains, pods))
    assert [each.pod.name for each in plan.evict] == ["p3", "p2"]
    assert plan.evict[0].message == "a gives up what it uses above its max of 2 gpu"


def test_a_tree_that_breaks_its_rules_admits_and_evicts_no_pod() -> None:
    wrong = Violation("a", "DuplicateName", "the name a occurs twice", stops=True)
    plan = plan_quota(
        QuotaState(
            tree("root[4]{a[0] b[4]}"), (running("x", gpus=4), pod("y", "b")), violations=(wrong,)
        )
    )
    assert plan.is_empty and plan.violations == (wrong,)
    assert [(str(row.reason), row.message) for row in plan.waiting] == [
        ("TreeInvalid", "the quota tree is invalid: the name a occurs twice")
    ]


def test_spared_pods_are_named() -> None:
    kept = (
        running("kept", gpus=2, budgets=("a/web",)),
        running("firm", gpus=2, is_preemptible=False),
    )
    (row,) = plan_quota(QuotaState(tree("root[4]{a[0] b[4]}"), (*kept, pod("y", "b")))).waiting
    assert [(each.pod, each.why) for each in row.spared] == [
        ("a/firm", "it is not preemptible"),
        ("a/kept", "PodDisruptionBudget a/web allows 0"),
    ]


def test_capacity_below_the_mins_shares_them_out() -> None:
    """20 are promised and 10 exist: each min counts half, and root gives no more than exists."""
    pods = (
        *(pod(f"a{number}") for number in range(9)),
        *(pod(f"b{number}", "b") for number in range(9)),
    )
    plan = plan_quota(QuotaState(tree("root[20]{a[10] b[10]}"), pods, capacity={"gpu": 10}))
    assert sorted(each.leaf for each in plan.admit if each.is_guaranteed) == ["a"] * 5 + ["b"] * 5


def test_every_node_is_in_the_plan() -> None:
    def names(node: QuotaNode) -> list[str]:
        return [each.name for each in node.walk()]

    root = tree("root[4]{a[2]{c[1] d[1]} b[2]}")
    assert [each.name for each in plan_quota(QuotaState(root)).nodes] == names(root)


def test_quota_is_free_and_no_node_has_room() -> None:
    nodes = tuple(NodeRoom(f"gpu-{number}", {"gpu": number}) for number in (1, 2, 3))
    pods = (
        running("x", gpus=1),
        pod("big", gpus=4, created_at=1.0),
        pod("small", gpus=3, created_at=2.0),
    )
    pods = (replace(pods[0], node="gpu-3"), *pods[1:])
    plan = plan_quota(QuotaState(tree("root[9]{a[9]}"), pods, nodes=nodes))
    assert (plan.admit, plan.evict) == ((), ())
    assert [(str(row.reason), row.message) for row in plan.waiting] == [
        ("NoFitOnNodes", f"gpu asks {asks} on one node; the freest of 3 nodes, gpu-2, has 2")
        for asks in (4, 3)
    ]
    room = plan_quota(QuotaState(tree("root[9]{a[9]}"), pods[1:], nodes=nodes))
    assert [each.pod.name for each in room.admit] == ["small"]
