"""`fairlead install` and `upgrade` over a cluster in memory: what they write, in which order, and
what they refuse; tests/kube/test_installation.py has a real one.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.apps.memory_target import MemoryTarget, Time

from fairlead.apps.installation.installer import InstallationPlan, Installer, Wanted
from fairlead.errors import UserError
from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installation import Installation, Parts
from fairlead.wire.installation.components import installed_objects
from fairlead.wire.installation.inventory import parse_inventory
from fairlead.wire.quota.tree_definition import quota_tree_definition

SMALL = Installation(
    parts=Parts(console=False, cluster_exporter=False, gpu_sharing=False, node_agent=False)
)
NAMESPACES = [
    each
    for each in installed_objects(SMALL)
    if "fairlead.io/installation" in each["metadata"].get("labels", {})
]
USERS_SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-ai"}}


def wanted(chosen: Installation = SMALL, version: str = "0.1.0") -> Wanted:
    return Wanted(version, chosen)


def installer(cluster: MemoryTarget, lines: list[str] | None = None) -> Installer:
    time = Time()
    return Installer(cluster, str if lines is None else lines.append, time.now, time.sleep)


def install(cluster: MemoryTarget, what: Wanted, *, is_forced: bool = False) -> InstallationPlan:
    run = installer(cluster)
    plan = run.plan(what, is_forced=is_forced)
    run.carry_out(plan, is_forced=is_forced)
    return plan


# --- the definition of the quota tree -------------------------------------------------------------


@pytest.mark.parametrize("is_own", [True, False], ids=["its own", "another program's"])
def test_a_definition_that_an_earlier_installation_left_is_written_and_recorded(
    is_own: bool,
) -> None:
    cluster = MemoryTarget()
    definition = quota_tree_definition()
    if is_own:
        cluster.put(definition)
    else:
        cluster.keep(definition)
    cluster.writes.clear()
    install(cluster, wanted())
    found = cluster.inventory("fairlead-system")
    assert found is not None
    listed = object_ref(definition) in parse_inventory(found).objects
    assert listed is is_own
    assert (("put", object_ref(definition).title) in cluster.writes) is is_own


# --- users and their namespace --------------------------------------------------------------------


@pytest.mark.parametrize("is_own", [True, False], ids=["its own", "another program's"])
def test_a_users_namespace_that_exists_is_used_and_stays_its_owners(is_own: bool) -> None:
    cluster = MemoryTarget()
    before = {**USERS_SPACE, "metadata": {"name": "kube-ai", "labels": {"team": "ack"}}}
    if is_own:
        cluster.put(before)
    else:
        cluster.keep(before)
    cluster.writes.clear()
    install(cluster, wanted())
    found = cluster.inventory("fairlead-system")
    assert found is not None
    target = object_ref(before)
    assert (target in parse_inventory(found).objects) is is_own
    if not is_own:
        assert cluster.get(target) == before
    assert cluster.get(ObjectRef(RBAC, "Role", "fairlead-people-controller", "kube-ai"))


def test_a_users_namespace_that_is_being_deleted_is_refused() -> None:
    cluster = MemoryTarget()
    cluster.keep({**USERS_SPACE, "metadata": {"name": "kube-ai", "deletionTimestamp": "now"}})
    with pytest.raises(UserError) as refused:
        install(cluster, wanted())
    assert refused.value.what == "namespace `kube-ai` is being deleted"
    assert cluster.writes == []


RBAC = "rbac.authorization.k8s.io/v1"
ADMIN = ObjectRef("fairlead.io/v1", "User", "admin", "kube-ai")


def person(name: str, role: str, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "kube-ai", "finalizers": ["fairlead.io/user"]}
    spec = {"userName": name, "userId": name, "apiRoles": [role], **more}
    return {"apiVersion": "fairlead.io/v1", "kind": "User", "metadata": meta, "spec": spec}


def test_the_first_administrator_is_made_once_and_never_changed() -> None:
    cluster = MemoryTarget()
    plan = install(cluster, wanted())
    made = cluster.get(ADMIN)
    assert made is not None and made["spec"] == {
        "userName": "Administrator",
        "userId": "admin",
        "apiRoles": ["admin"],
        "groups": [],
        "deletable": False,
        "disabled": False,
    }
    assert ADMIN not in map(object_ref, plan.objects), "an upgrade would write it again"
    titles = [title for _, title in cluster.writes]
    definition = "CustomResourceDefinition users.fairlead.io"
    assert titles.index(definition) < titles.index("User kube-ai/admin")
    edited = person("admin", "admin", userName="Ada", disabled=True)
    cluster.keep(edited)
    install(cluster, wanted())
    assert cluster.get(ADMIN) == edited


@pytest.mark.parametrize(
    ("users", "chosen"),
    [
        ([person("root", "admin")], SMALL),
        ([person("root", "admin", disabled=True)], SMALL),
        ([person("admin", "researcher")], SMALL),
        ([], replace(SMALL, first_administrator=False)),
        ([], replace(SMALL, parts=Parts(people=False))),
    ],
    ids=["another one", "a disabled one", "the name is taken", "not chosen", "without the part"],
)
def test_no_administrator_is_made(users: list[dict[str, Any]], chosen: Installation) -> None:
    cluster = MemoryTarget()
    for each in users:
        cluster.keep(each)
    install(cluster, wanted(chosen))
    assert not [title for _, title in cluster.writes if title.startswith("User ")]


def test_the_people_controller_is_not_ended_while_it_holds_users() -> None:
    cluster = MemoryTarget()
    install(cluster, wanted(WITH_ALL))
    cluster.keep(person("bob", "researcher"))
    cluster.writes.clear()
    without = wanted(replace(WITH_ALL, parts=Parts(people=False)))
    with pytest.raises(UserError) as refused:
        install(cluster, without)
    assert refused.value.what == "1 user has rights by the people controller: bob"
    assert cluster.writes == []
    del cluster.objects[object_ref(person("bob", "researcher")).identity]
    install(cluster, without)
    removed = [title for verb, title in cluster.writes if verb == "remove"]
    assert "Deployment fairlead-system/fairlead-people-controller" in removed
    assert "Namespace kube-ai" not in removed, "users are in it"


# --- what waits for a part ------------------------------------------------------------------------

WITH_ALL = replace(SMALL, parts=Parts())
GATED = ObjectRef("v1", "Pod", "p", "team")
UNSCHEDULED = ObjectRef("v1", "Pod", "s", "team")


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (replace(WITH_ALL, parts=Parts(quota=False)), ["team/p"]),
        (replace(WITH_ALL, parts=Parts(gpu_sharing=False)), ["team/s"]),
        (replace(WITH_ALL, scheduler="control-plane"), ["team/s"]),
        (replace(WITH_ALL, parts=Parts(quota=False, gpu_sharing=False)), ["team/p", "team/s"]),
        (replace(WITH_ALL, parts=Parts(console=False)), []),
    ],
    ids=["quota", "sharing", "scheduler", "both", "console"],
)
def test_a_part_that_pods_wait_for_is_not_ended(changed: Installation, named: list[str]) -> None:
    cluster = MemoryTarget()
    install(cluster, wanted(WITH_ALL))
    cluster.gated, cluster.unscheduled = [GATED], [UNSCHEDULED]
    cluster.writes.clear()
    if named:
        with pytest.raises(UserError) as refused:
            install(cluster, wanted(changed))
        assert [each for each in ("team/p", "team/s") if each in refused.value.what] == named
        assert cluster.writes == []
    else:
        install(cluster, wanted(changed))
        assert ("remove", "Deployment fairlead-system/fairlead-console") in cluster.writes


# --- versions -------------------------------------------------------------------------------------

REGISTRY = "registry.example.com:5000/gpu"
SCHEDULER = f"{REGISTRY}/kube-scheduler"


@pytest.mark.parametrize(
    ("server", "chosen", "what", "hint"),
    [
        (
            (1, 35),
            replace(SMALL),
            "Kubernetes 1.35; admission by policies needs 1.36",
            "`--set admission=webhooks` works with Kubernetes 1.30 and later",
        ),
        (
            (1, 34),
            Installation(kube_scheduler_image=f"{SCHEDULER}:v1.36.3"),
            "Kubernetes 1.34; admission by policies needs 1.36",
            "`--set admission=webhooks` works with Kubernetes 1.32 and later, with "
            f"`--set kubeSchedulerImage={SCHEDULER}:v1.34.PATCH`",
        ),
        (
            (1, 34),
            Installation(admission="webhooks"),
            "kube-scheduler 1.36 of `registry.k8s.io/kube-scheduler:v1.36.3` is newer than the "
            "API server 1.34",
            "`--set kubeSchedulerImage=registry.k8s.io/kube-scheduler:v1.34.PATCH`",
        ),
        ((1, 31), Installation(admission="webhooks"), "needs 1.32", "upgrade the cluster"),
    ],
)
def test_an_api_server_that_is_too_old_is_refused_before_the_first_write(
    server: tuple[int, int], chosen: Installation, what: str, hint: str
) -> None:
    cluster = MemoryTarget()
    cluster.server = server
    with pytest.raises(UserError) as refused:
        installer(cluster).plan(wanted(chosen))
    assert what in refused.value.what
    assert refused.value.hint == hint
    assert cluster.writes == []


@pytest.mark.parametrize(
    ("server", "chosen"),
    [
        (None, Installation()),
        ((1, 36), Installation()),
        ((1, 37), Installation()),
        ((1, 34), Installation(admission="webhooks", scheduler="control-plane")),
        ((1, 34), replace(SMALL, admission="webhooks")),
        ((1, 34), Installation(admission="webhooks", kube_scheduler_image=f"{SCHEDULER}:v1.34.9")),
        ((1, 34), Installation(admission="webhooks", kube_scheduler_image=f"{SCHEDULER}:mine")),
    ],
)
def test_a_version_that_fits_or_is_not_known_is_no_reason(
    server: tuple[int, int] | None, chosen: Installation
) -> None:
    cluster = MemoryTarget()
    cluster.server = server
    assert installer(cluster).plan(wanted(chosen)).objects


def test_an_upgrade_does_not_keep_the_image_of_the_installed_version() -> None:
    cluster = MemoryTarget()
    image = f"{REGISTRY}/fairlead"
    install(cluster, wanted(replace(SMALL, image=f"{image}:0.1.0")))
    cluster.writes.clear()
    for old in (f"{image}:0.1.0", f"{image}:v0.1.0", f"{image}:0.1.0@sha256:{64 * 'a'}"):
        with pytest.raises(UserError) as refused:
            install(cluster, wanted(replace(SMALL, image=old), "0.2.0"))
        assert refused.value.what.endswith(f"needs its own image, and `{old}` is of `0.1.0`")
        assert refused.value.hint == "name the new one: `--set image=NAME:TAG`"
    assert cluster.writes == []
    for new in (f"{image}:0.2.0", f"{image}:latest", f"{image}@sha256:{64 * 'a'}", image):
        assert installer(cluster).plan(wanted(replace(SMALL, image=new), "0.2.0")).objects
    unchanged = wanted(replace(SMALL, image=f"{image}:0.1.0"))
    assert installer(cluster).plan(unchanged).objects, "the same version keeps its image"


# --- webhooks -------------------------------------------------------------------------------------

HOOKED = Installation(admission="webhooks")
SERVER = ("apps", "Deployment", "fairlead-system", "fairlead-admission-webhook")


class Serving:
    """A cluster in which pods run after these `seconds`; its webhook writes its authority later.

    `known`: names of configurations that have it.
    """

    def __init__(self, cluster: MemoryTarget, time: Time, seconds: float, known: set[str]) -> None:
        self._cluster = cluster
        self._known = known
        self._ready_at = time.now() + seconds
        self._time = time

    def sleep(self, seconds: float) -> None:
        self._time.seconds += seconds
        if self._time.now() < self._ready_at:
            return
        for each in self._cluster.objects.values():
            if each["kind"] in ("Deployment", "DaemonSet"):
                counts = ("updatedReplicas", "availableReplicas")
                each["status"] = dict.fromkeys(counts, each["spec"].get("replicas", 1))
            late = self._ready_at + 3
            for hook in each.get("webhooks", ()) if self._time.now() >= late else ():
                hook["clientConfig"] = {**hook["clientConfig"], "caBundle": "QQ=="}
                self._known.add(each["metadata"]["name"])


def install_webhooks(
    cluster: MemoryTarget, ready_after: float, wait: float, known: set[str] | None = None
) -> None:
    time = Time()
    serving = Serving(cluster, time, ready_after, set() if known is None else known)
    run = Installer(cluster, str, time.now, serving.sleep)
    run.carry_out(run.plan(wanted(HOOKED)), wait_seconds=wait)


def could_refuse(each: Any) -> bool:
    return any(hook.get("failurePolicy") != "Ignore" for hook in each["webhooks"])


def test_on_a_simulated_cluster_no_webhook_is_waited_for() -> None:
    """No program of its containers writes an authority."""
    cluster = MemoryTarget()
    cluster.runs_no_program = True
    install_webhooks(cluster, ready_after=float("inf"), wait=1.0)
    stored = [each for each in cluster.objects.values() if each.get("webhooks")]
    assert stored and all(could_refuse(each) for each in stored)


def test_no_webhook_refuses_before_it_can_answer() -> None:
    """Also when an installation changes from policies to webhooks: these go last."""
    cluster = MemoryTarget()
    install(cluster, wanted(Installation()))
    cluster.puts.clear()
    cluster.writes.clear()
    answered: list[bool] = []

    def look(put: Any) -> None:
        """Whether the server of a webhook that could refuse is ready, and may be called."""
        if "webhooks" in put and could_refuse(put):
            answered.append(
                "status" in cluster.objects[SERVER] and put["metadata"]["name"] in known
            )

    known = set[str]()
    cluster.after_put = look
    install_webhooks(cluster, ready_after=7, wait=30, known=known)
    assert answered == [True] * 6
    hooks = [n for n, (_, title) in enumerate(cluster.writes) if "WebhookConfiguration" in title]
    assert max(hooks) < [verb for verb, _ in cluster.writes].index("remove"), "policies hold on"


def test_a_webhook_that_never_runs_refuses_nothing_and_the_next_run_goes_on() -> None:
    cluster = MemoryTarget()
    for _ in range(2):
        with pytest.raises(UserError) as caught:
            install_webhooks(cluster, ready_after=99, wait=30)
        assert caught.value.what == (
            "after 30 s not ready: Deployment fairlead-system/fairlead-admission-webhook, "
            "ValidatingWebhookConfiguration fairlead-gpu-grants, "
            "ValidatingWebhookConfiguration fairlead-quota-tree, "
            "ValidatingWebhookConfiguration fairlead-quota-guard, "
            "ValidatingWebhookConfiguration fairlead-people, "
            "MutatingWebhookConfiguration fairlead-gpu-scheduler, "
            "MutatingWebhookConfiguration fairlead-quota-gate"
        )
        written = [each for each in cluster.objects.values() if "webhooks" in each]
        assert len(written) == 6
        assert not any(map(could_refuse, written))
    install_webhooks(cluster, ready_after=1, wait=30)
    assert any(could_refuse(each) for each in cluster.objects.values() if "webhooks" in each)


def test_without_waiting_webhooks_are_written_once_as_they_are() -> None:
    cluster = MemoryTarget()
    install_webhooks(cluster, ready_after=99, wait=0)
    written = [each for each in cluster.puts if "webhooks" in each]
    assert len(written) == 6
    assert any(map(could_refuse, written))


# --- force ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_forced", [True, False])
def test_fields_of_others_are_taken_over_from_the_namespaces_on(is_forced: bool) -> None:
    cluster = MemoryTarget()
    for each in NAMESPACES:
        cluster.keep(each)
    install(cluster, wanted(), is_forced=is_forced)
    first = [title for _, title in cluster.writes[: len(NAMESPACES)]]
    assert first == [object_ref(each).title for each in NAMESPACES]
    unforced = [each for each in cluster.unforced if each in first]
    assert unforced == ([] if is_forced else 2 * first)
