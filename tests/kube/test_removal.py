"""`fairlead uninstall` on a real API server: nothing stays but a written list, whatever happened
before or meanwhile.

The oracle is etcd's own list of keys, and the nodes and namespaces as they were.
"""

from __future__ import annotations

import base64
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.cut_target import CutOffError, CutTarget
from tests.kube.etcd_keys import keys, marked
from tests.kube.kubectl import KubectlError
from tests.kube.objects import share_node
from tests.kube.quota_line import QuotaController, bounded, enforce, tree
from tests.kube.servers import FAIRLEAD, environment, run_fairlead
from tests.waiting import HANG_SECONDS, wait_until

from fairlead import __version__
from fairlead.apps.installation.installer import Installer, Wanted
from fairlead.apps.installation.removal import Removal
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.queries.installation_target import KubeInstallationTarget
from fairlead.errors import UserError
from fairlead.model.actions import ObjectRef, PatchObject, object_ref
from fairlead.model.installation import Installation, Parts
from fairlead.model.operations.operation import INSTALLATION
from fairlead.wire.installation.components import installed_objects
from fairlead.wire.operations.record import lease_name

Object = dict[str, Any]
SYSTEM, NODE_SPACE = "fairlead-system", "fairlead-nodes"
HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "install.md"
CRD = "elasticquotatrees.scheduling.sigs.k8s.io"
DEFINITIONS = "/registry/apiextensions.k8s.io/customresourcedefinitions"
SERVED = "/registry/apiregistration.k8s.io/apiservices"
STAYS = {
    f"{DEFINITIONS}/{CRD}": "The definitions",
    f"{DEFINITIONS}/users.fairlead.io": "The definitions",
    f"{DEFINITIONS}/usergroups.fairlead.io": "The definitions",
    f"{SERVED}/v1beta1.scheduling.sigs.k8s.io": "The definitions",
    f"{SERVED}/v1.fairlead.io": "The definitions",
    "/registry/scheduling.sigs.k8s.io/elasticquotatrees/kube-system/elasticquotatree": "trees",
    "/registry/namespaces/kube-ai": "`kube-ai`",
    "/registry/serviceaccounts/kube-ai/default": "`kube-ai`",
    "/registry/configmaps/kube-ai/kube-root-ca.crt": "`kube-ai`",
    "/registry/fairlead.io/users/kube-ai/admin": "users",
    "/registry/fairlead.io/users/kube-ai/bob": "users",
}
"""Keys that stay without --delete-data, and the words for them in docs/how-to/install.md."""
HELD = "example.com/held"
SMALL = Installation(
    parts=Parts(console=False, cluster_exporter=False, gpu_sharing=False, node_agent=False)
)
"""Objects of all kinds, but few of each."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as plane:
        plane.admin.apply([share_node("n1")])
        plane.admin.run("create", "namespace", "team")
        wait_until("the namespace is complete", lambda: plane.has_completed("team"))
        yield plane


def api(kubeconfig: Path) -> KubeBlocking:
    connection = find_connection(str(kubeconfig))
    assert connection is not None
    return KubeBlocking(connection)


def target(cluster: ControlPlane, kubeconfig: Path | None = None) -> KubeInstallationTarget:
    return KubeInstallationTarget(api(kubeconfig or cluster.kubeconfig))


def install(cluster: ControlPlane, chosen: Installation = Installation()) -> None:  # noqa: B008
    """As `fairlead install` does, in this process."""
    installer = Installer(target(cluster), str, time.time, time.sleep)
    installer.carry_out(installer.plan(Wanted(__version__, chosen)))


def removal(cluster: KubeInstallationTarget) -> Removal:
    return Removal(cluster, str, time.time, time.sleep)


def uninstall(cluster: ControlPlane, *words: str, status: int = 0) -> str:
    return fairlead(cluster, "uninstall", *words, status=status)


def fairlead(cluster: ControlPlane, *words: str, status: int = 0) -> str:
    return run_fairlead(cluster.kubeconfig, *words, status=status)


# --- after use ------------------------------------------------------------------------------------


def test_after_use_only_what_is_written_down_stays(cluster: ControlPlane) -> None:
    before, marks = keys(cluster), marked(cluster)
    install(cluster)
    _without_validation(cluster)
    controller = QuotaController(cluster, "removal")
    try:
        controller.start()
        enforce(cluster, bounded("root", 1, 1, children=[bounded("root.a", 1, 1, ["team"])]))
        _work_of_an_agent(cluster)
        _work_of_a_people_controller(cluster)
        cluster.admin.create([_too_large("Pod", "p"), _too_large("Job", "j"), _of_the_scheduler()])
        wait_until("the job is held back", lambda: _is_suspended(cluster))
        wait_until("the Lease exists", lambda: cluster.admin.get("leases", "-n", SYSTEM))

        present = keys(cluster)
        refused = uninstall(cluster, status=1)
        assert "1 pod waits at the scheduling gate `fairlead.io/quota`: team/p" in refused
        assert "1 job is held back for quota: team/j" in refused
        assert "1 pod waits for the scheduler `fairlead-scheduler`: default/s" in refused
        assert keys(cluster) >= present, "a refused removal removes nothing"
        refused = fairlead(cluster, "upgrade", "--set=parts.quota=false", status=1)
        assert "1 pod waits at the scheduling gate `fairlead.io/quota`: team/p" in refused
        assert "1 job is held back for quota: team/j" in refused
        assert "the scheduler" not in refused, "the scheduler stays"
        refused = fairlead(cluster, "upgrade", "--set=parts.gpuSharing=false", status=1)
        assert "1 pod waits for the scheduler `fairlead-scheduler`: default/s" in refused
        assert "quota" not in refused, "the quota controller stays"
        assert keys(cluster) >= present, "a refused upgrade changes nothing"

        # A running controller would hold the job back again, so its Deployment ends before.
        controller.stop()
        lines = uninstall(cluster, "--release-waiting")
    finally:
        controller.stop()
    assert "released pod team/p" in lines and "released job team/j" in lines
    assert "pod default/s never starts: delete it" in lines
    _check_users_without_a_controller(cluster)
    assert not _is_suspended(cluster)
    pod = cluster.admin.run("get", "pod", "p", "-n", "team", "-o", "jsonpath={.spec}")
    assert "schedulingGates" not in pod

    cluster.admin.run("delete", "pod/p", "job/j", "-n", "team")
    cluster.admin.run("delete", "pod", "s", "-n", "default", "--force")
    wait_until("its pods are gone", lambda: not cluster.admin.get("pods", "-n", "team"))
    wait_until(
        lambda: f"the list and what is left differ by {(keys(cluster) - before) ^ STAYS.keys()}",
        lambda: keys(cluster) - before == STAYS.keys(),
    )
    page = HOW_TO.read_text(encoding="utf-8").partition("### What stays")[2].partition("\n#")[0]
    assert {words for words in STAYS.values() if words not in page} == set()

    left = uninstall(cluster, status=1)
    assert f"CustomResourceDefinition {CRD}" in left and "is left" in left
    lines = uninstall(cluster, "--delete-data")
    assert "cleaned Node n1" in lines and "cleaned Namespace team" in lines
    assert keys(cluster) == before, "with --delete-data nothing stays"
    assert marked(cluster) == marks
    assert "no object that `fairlead install` wrote" in uninstall(
        cluster, "--delete-data", status=1
    )


def _without_validation(cluster: ControlPlane) -> None:
    """No kubelet runs the server that answers, so trees and users would be refused."""
    names = ("fairlead-quota-tree", "fairlead-people")
    cluster.admin.run("delete", "validatingwebhookconfiguration", *names)


def _work_of_an_agent(cluster: ControlPlane) -> None:
    """What a node agent writes on its node, as its requests write it."""
    labels = {"fairlead.io/gpu-isolation": "none", "aliyun.accelerator/nvidia_mem": "15360MiB"}
    annotations = {"fairlead.io/gpus": "[]", "fairlead.io/gpu-mem-unit": "GiB"}
    ready = {"type": "GPUShareReady", "status": "True", "reason": "Ready", "message": "m"}
    counts = {"aliyun.com/gpu-core.percentage": "400"}
    status = {"capacity": counts, "allocatable": counts, "conditions": [ready]}
    node = ObjectRef("v1", "Node", "n1")
    agent = target(cluster)
    marks = {"metadata": {"labels": labels, "annotations": annotations}}
    assert agent.change(PatchObject(node, marks)) is None
    assert agent.change(PatchObject(node, {"status": status}, "status", is_strategic=True)) is None


PERSON = {"apiVersion": "fairlead.io/v1", "kind": "User"}
RBAC = "rbac.authorization.k8s.io"
MINE = {"fairlead.io/user": "bob"}
FOREIGN_BINDING: Object = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "theirs", "namespace": "team"},
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "ServiceAccount", "name": "bob", "namespace": "kube-ai"}],
}


def _work_of_a_people_controller(cluster: ControlPlane) -> None:
    """What a controller leaves that is killed while it works: a user with all rights, and one that
    is being deleted.
    """
    binding = {
        **FOREIGN_BINDING,
        "metadata": {"name": "bob:team:fairlead-researcher", "namespace": "team", "labels": MINE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "fairlead-researcher"},
    }
    everywhere = {
        **binding,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "bob:clusterRole:fairlead-researcher-cluster", "labels": MINE},
    }
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "bob", "namespace": "kube-ai", "labels": MINE},
    }
    cluster.admin.apply([_user_object("bob"), _user_object("eve"), account, binding, everywhere])
    cluster.admin.apply([FOREIGN_BINDING])
    cluster.admin.run("delete", "user", "eve", "-n", "kube-ai", "--wait=false")
    status = {"status": {"serviceAccount": {"name": "bob", "namespace": "kube-ai"}}}
    bob = ObjectRef("fairlead.io/v1", "User", "bob", "kube-ai")
    assert target(cluster).change(PatchObject(bob, status, "status")) is None


def _user_object(name: str) -> Object:
    meta = {"name": name, "namespace": "kube-ai", "finalizers": ["fairlead.io/user"]}
    return {
        **PERSON,
        "metadata": meta,
        "spec": {"userName": name, "userId": name, "apiRoles": ["researcher"]},
    }


def _check_users_without_a_controller(cluster: ControlPlane) -> None:
    """No right of a user is left; the objects are records that can be deleted."""
    for kind in ("rolebindings", "clusterrolebindings", "serviceaccounts"):
        assert not cluster.admin.get(kind, "-A", "-l", "fairlead.io/user")
    (theirs,) = cluster.admin.get("rolebindings", "-n", "team")
    assert theirs["metadata"]["name"] == "theirs", "a foreign binding stays"
    cluster.admin.run("delete", "rolebinding", "theirs", "-n", "team")
    users = {each["metadata"]["name"]: each for each in cluster.admin.get("users", "-A")}
    assert users.keys() == {"admin", "bob"}, "the user that was being deleted is gone"
    assert "finalizers" not in users["bob"]["metadata"]
    assert not users["bob"].get("status")
    assert users["bob"]["spec"]["apiRoles"] == ["researcher"]


def _too_large(kind: str, name: str) -> Object:
    """More than the leaf's max. A job with a deadline is held back as a whole."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    spec: Object = {"containers": [container], "restartPolicy": "Never"}
    meta = {"name": name, "namespace": "team"}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec}
    job = {"activeDeadlineSeconds": 600, "template": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": kind, "metadata": meta, "spec": job}


def _of_the_scheduler() -> Object:
    container = {"name": "c", "image": "i"}
    spec = {"containers": [container], "schedulerName": "fairlead-scheduler"}
    meta = {"name": "s", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _is_suspended(cluster: ControlPlane) -> bool:
    (job,) = cluster.admin.get("jobs", "-n", "team")
    return bool(job["spec"].get("suspend"))


# --- interrupted ----------------------------------------------------------------------------------


def test_after_each_write_another_run_goes_on_to_the_same_end(cluster: ControlPlane) -> None:
    before, marks = keys(cluster), marked(cluster)
    install(cluster, SMALL)
    _work_of_an_agent(cluster)
    cluster.admin.run("label", "namespace", "team", "fairlead.io/quota=enforced")
    objects, runs, written = len(installed_objects(SMALL)), 0, 0
    while keys(cluster) != before or marked(cluster) != marks:
        cut = CutTarget(api(cluster.kubeconfig), runs)
        interrupted = removal(cut)
        with suppress(CutOffError):
            plan = interrupted.plan(with_data=True)
            interrupted.carry_out(plan, is_releasing=False, seconds=60)
        runs, written = runs + 1, written + cut.effects
        assert runs < 3 * objects, "no run comes further"
    assert written > objects
    with pytest.raises(UserError) as caught:
        removal(target(cluster)).plan(with_data=True)
    assert caught.value.what == (
        "this cluster has no inventory, and no object that `fairlead install` wrote: nothing to "
        "remove"
    )


@pytest.mark.turns(2, 0)
def test_killed_and_interrupted_from_the_keyboard(cluster: ControlPlane) -> None:
    cluster.admin.run("create", "namespace", "kube-ai")
    cluster.admin.run("create", "configmap", "theirs", "-n", "kube-ai")
    wait_until("the namespace is complete", lambda: cluster.has_completed("kube-ai"))
    before = keys(cluster)
    install(cluster)
    _check_missing_right(cluster)
    assert _ended_by(cluster, signal.SIGKILL) == (-signal.SIGKILL, "")
    # as 30 s after the death of its holder
    cluster.admin.run("delete", "lease", lease_name(INSTALLATION), "-n", SYSTEM)
    status, words = _ended_by(cluster, signal.SIGINT)
    assert status == 130
    assert words == "error: interrupted\nhint: the same command goes on where this run ended\n"
    cluster.admin.run(
        "patch",
        "configmap",
        "fairlead-installation",
        "-n",
        SYSTEM,
        "-p",
        '{"data": {"objects": "["}}',
    )
    lines = uninstall(cluster, "--delete-data")
    assert "is no inventory: " in lines and "objects are found without it" in lines
    assert keys(cluster) == before, "another program's namespace `kube-ai` stays"
    cluster.admin.run("delete", "namespace", "kube-ai")


def _ended_by(cluster: ControlPlane, number: signal.Signals) -> tuple[int, str]:
    """Exit status and messages of a removal that gets the signal after its third removal."""
    with subprocess.Popen(
        [*FAIRLEAD, "uninstall", "--delete-data", f"--kubeconfig={cluster.kubeconfig}"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        removed = 0
        for line in process.stdout:
            removed += line.startswith("removed ")
            if removed == 3:
                break
        process.send_signal(number)
        process.stdout.read()
        messages = process.stderr.read()
        return process.wait(timeout=HANG_SECONDS), messages


def _check_missing_right(cluster: ControlPlane) -> None:
    """A user who may do all but delete DaemonSets, of the forty objects' kinds."""
    present = keys(cluster)
    with (
        _user(cluster, [*_ALL, *_EXCEPT_DAEMON_SETS]) as kubeconfig,
        pytest.raises(UserError) as refused,
    ):
        removal(target(cluster, kubeconfig)).plan(with_data=True)
    first, *rows = refused.value.what.splitlines()
    assert first == f"{len(rows)} objects may not be removed, and nothing was removed:"
    assert {row.partition(":")[0] for row in rows} == {
        f"DaemonSet {NODE_SPACE}/fairlead-gpu-exporter",
        f"DaemonSet {NODE_SPACE}/fairlead-node-agent",
    }
    assert "cannot delete resource" in rows[0]
    assert keys(cluster) >= present


_ALL = [
    {"apiGroups": [group], "resources": ["*"], "verbs": ["*"]}
    for group in (
        *("", "policy", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "batch"),
        *("admissionregistration.k8s.io", "scheduling.sigs.k8s.io", "networking.k8s.io"),
        "fairlead.io",
    )
]
_EXCEPT_DAEMON_SETS = [
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
    {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get", "list", "patch"]},
]


@contextmanager
def _user(cluster: ControlPlane, rules: list[Object]) -> Iterator[Path]:
    """A kubeconfig of a user with these rights."""
    rbac = "rbac.authorization.k8s.io"
    plain = {"apiVersion": f"{rbac}/v1", "metadata": {"name": "almost"}}
    binding = {
        **plain,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "almost"},
        "subjects": [{"kind": "User", "name": "almost"}],
    }
    cluster.admin.apply([{**plain, "kind": "ClusterRole", "rules": rules}, binding])
    try:
        yield cluster.write_user_kubeconfig("almost")
    finally:
        cluster.admin.run("delete", "clusterrole,clusterrolebinding", "almost")


# --- what hangs -----------------------------------------------------------------------------------


@pytest.mark.turns(2, 1)
def test_a_dead_webhook_and_finalizers_that_never_end(cluster: ControlPlane) -> None:
    before = keys(cluster)
    _install_webhooks(cluster)
    cluster.admin.run("label", "namespace", "team", "fairlead.io/quota=enforced")
    wait_until("no webhook answers", lambda: "failed calling webhook" in _created_pod(cluster), 60)
    cluster.admin.run("create", "configmap", "theirs", "-n", SYSTEM)
    held = '{"metadata": {"finalizers": ["' + HELD + '"]}}'
    for kind, name in (("configmap", "theirs"), ("deployment", "fairlead-console")):
        cluster.admin.run("patch", kind, name, "-n", SYSTEM, "-p", held)

    started = time.monotonic()
    refused = uninstall(cluster, "--delete-data", "--wait=20", status=1)
    assert time.monotonic() - started < 80
    assert (
        f"still being deleted: Deployment {SYSTEM}/fairlead-console, Namespace {SYSTEM}" in refused
    )
    for title in (
        "ConfigMap fairlead-system/theirs",
        "Deployment fairlead-system/fairlead-console",
    ):
        assert f"{title} (finalizer `{HELD}`)" in refused
    assert _created_pod(cluster) == "", "admission is gone, so pods start"
    cluster.admin.run("delete", "pod", "p", "-n", "team", "--force")

    # The namespace is terminating now, and its inventory is gone.
    again = uninstall(cluster, "--delete-data", "--wait=2", status=1)
    assert f"ConfigMap {SYSTEM}/theirs (finalizer `{HELD}`)" in again
    for kind, name in (("configmap", "theirs"), ("deployment", "fairlead-console")):
        cluster.admin.run(
            "patch", kind, name, "-n", SYSTEM, "-p", '{"metadata": {"finalizers": null}}'
        )
    wait_until("nothing is left", lambda: keys(cluster) == before, 60)


def _install_webhooks(cluster: ControlPlane) -> None:
    """No kubelet runs the webhook: its part is played once the installer waits for it.

    Until then the webhooks refuse nothing; after that they keep the authority.
    """
    played = target(cluster)
    authority = base64.b64encode(cluster.authority.read_bytes()).decode()
    open_before: list[bool] = []

    def play(_: float) -> None:
        found = _webhooks(cluster)
        if not found:
            return  # it waits for the definition of the quota tree
        open_before.append({each["failurePolicy"] for each in found.values()} == {"Ignore"})
        counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        status = {"observedGeneration": 1, **dict.fromkeys(counts, 2)}
        for kind in ("Mutating", "Validating"):
            for each in played.list_objects(_configuration(kind)):
                hooks: Any = each["webhooks"]
                for hook in hooks:
                    hook["clientConfig"]["caBundle"] = authority
                played.change(PatchObject(object_ref(each), {"webhooks": hooks}))
        server = ObjectRef("apps/v1", "Deployment", "fairlead-admission-webhook", SYSTEM)
        # Its controller takes this back at once: the installer looks before, or at the next beat.
        played.change(PatchObject(server, {"status": status}, "status"))

    installer = Installer(target(cluster), str, time.time, play)
    plan = installer.plan(Wanted(__version__, Installation(admission="webhooks")))
    installer.carry_out(plan, wait_seconds=60)
    assert open_before and all(open_before)
    written = _webhooks(cluster).values()
    assert {each["clientConfig"]["caBundle"] for each in written} == {authority}
    assert "Fail" in {each["failurePolicy"] for each in written}


def _webhooks(cluster: ControlPlane) -> dict[str, Any]:
    found = target(cluster)
    return {
        hook["name"]: hook
        for kind in ("Mutating", "Validating")
        for each in found.list_objects(_configuration(kind))
        for hook in cast("list[Any]", each["webhooks"])
    }


def _configuration(kind: str) -> ObjectRef:
    return ObjectRef("admissionregistration.k8s.io/v1", f"{kind}WebhookConfiguration", "")


def _created_pod(cluster: ControlPlane) -> str:
    """The refusal of a small pod; "" if it is created."""
    small = _too_large("Pod", "p")
    small["spec"]["automountServiceAccountToken"] = False
    try:
        cluster.admin.create([small])
    except KubectlError as error:
        return str(error)
    return ""


def test_after_the_namespace_was_deleted_by_hand_and_a_tree_is_held(cluster: ControlPlane) -> None:
    before = keys(cluster)
    install(cluster)
    cluster.admin.run("delete", "namespace", SYSTEM, NODE_SPACE)
    _without_validation(cluster)
    held = tree(bounded("root", 1, 1))
    held["metadata"]["finalizers"] = [HELD]
    cluster.admin.create([held])
    refused = uninstall(cluster, "--delete-data", "--wait=4", status=1)
    title = "ElasticQuotaTree kube-system/elasticquotatree"
    assert f"{title} (finalizer `{HELD}`)" in refused
    removed = '[{"op": "remove", "path": "/metadata/finalizers"}]'
    place = ("elasticquotatree", "-n", "kube-system")
    cluster.admin.run("patch", CRD, *place, "--type=json", "-p", removed)
    cluster.admin.run("wait", "--for=delete", f"crd/{CRD}", "--timeout=60s")
    assert "Namespace kube-ai" in uninstall(cluster, "--delete-data"), "the run goes on"
    assert keys(cluster) == before
