"""The Helm chart on a real API server: installed, upgraded, tested and removed by Helm, by one of
the two programs in turn.

There is no kubelet. A pod of a hook is played: its command runs on this machine with the token of
its account, and the exit status becomes the pod's phase.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.helm import HELMS, Helm, packed_chart
from tests.kube.installed_objects import has_gated_pod, install_foreign_definition
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.servers import fairlead_answer
from tests.turns import in_turn
from tests.waiting import wait_until

from fairlead import __version__
from fairlead.model.installation import OLDEST_VERSION

SYSTEM = "fairlead-system"
OTHER = "gpu-2"
"""The namespace of a release that is not where Fairlead looks first."""
TREES = "elasticquotatrees.scheduling.sigs.k8s.io"
PEOPLE = ("users.fairlead.io", "usergroups.fairlead.io")
KEPT = {
    *(("CustomResourceDefinition", "<none>", name) for name in (TREES, *PEOPLE)),
    ("Namespace", "<none>", "kube-ai"),
    ("ServiceAccount", "kube-ai", "default"),
    ("ConfigMap", "kube-ai", "kube-root-ca.crt"),
    ("User", "kube-ai", "admin"),
    ("User", "kube-ai", "bob"),
}
"""What a release leaves, with `crds.keep`."""
PARTS = ("console", "clusterExporter", "gpuExporter", "gpuSharing", "nodeAgent", "quota", "people")
NOT_COMPARED = ("events", "leases", "componentstatuses", "apiservices")
"""What a cluster writes on its own at any time, or for a definition."""
HELD_JOB: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "held",
        "namespace": "default",
        "annotations": {"fairlead.io/suspended-for": "quota"},
    },
    "spec": {
        "suspend": True,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
        },
    },
}
"""As the quota controller leaves a job for which there is no quota."""
Row = tuple[str, ...]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as plane:
        yield plane


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(packed_chart(tmp_path_factory.mktemp("chart")))


@pytest.fixture(params=in_turn(HELMS, len(HELMS)))
def helm(request: pytest.FixtureRequest, cluster: ControlPlane, tmp_path: Path) -> Iterator[Helm]:
    """What a failed test leaves is removed."""
    found = Helm(request.param, tmp_path, cluster.kubeconfig)
    yield found
    for space in (SYSTEM, OTHER):
        found.answer("uninstall", "gpus", "-n", space, "--no-hooks", "--ignore-not-found", "--wait")
    cluster.admin.run("delete", "crd", TREES, *PEOPLE, "--ignore-not-found")
    cluster.admin.run("delete", "namespace", "kube-ai", "--ignore-not-found")


def everything(cluster: ControlPlane) -> set[Row]:
    """Kind, namespace and name of all objects of all kinds."""
    kinds = cluster.admin.run("api-resources", "--verbs=list", "-o", "name").split()
    wanted = ",".join(each for each in kinds if each.partition(".")[0] not in NOT_COMPARED)
    columns = "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name"
    lines = cluster.admin.run("get", wanted, "-A", "--no-headers", "-o", columns)
    return {tuple(line.split()) for line in lines.splitlines()}


@contextmanager
def played(cluster: ControlPlane, part: str) -> Iterator[Future[str]]:
    """Runs the command of the pod with this name once it is there; its result is what it prints."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(_play, cluster, part)


def _play(cluster: ControlPlane, part: str) -> str:
    label = f"app.kubernetes.io/name={part}"
    wait_until(f"a pod of {part} exists", lambda: cluster.admin.get("pods", "-l", label))
    (pod,) = cluster.admin.get("pods", "-l", label)
    spec: Any = pod["spec"]
    space = pod["metadata"]["namespace"]
    account = spec["serviceAccountName"]
    token = cluster.admin.run("create", "token", account, "-n", space).strip()
    kubeconfig = write_kubeconfig(
        cluster.folder / f"{part}.kubeconfig", cluster.server, cluster.authority, token_user(token)
    )
    (container,) = spec["containers"]
    answer = fairlead_answer(kubeconfig, *container["command"][1:])
    phase = "Failed" if answer.returncode else "Succeeded"
    name = pod["metadata"]["name"]
    body = json.dumps({"status": {"phase": phase}})
    cluster.admin.run("patch", "pod", name, "-n", space, "--subresource=status", "-p", body)
    return answer.stdout + answer.stderr


@pytest.mark.turns(4, 2)
def test_a_release_from_its_beginning_to_its_end(
    helm: Helm, cluster: ControlPlane, chart: str
) -> None:
    ensure_namespace(cluster)
    before = everything(cluster)
    notes = helm.run("install", "gpus", chart, "-n", SYSTEM)
    assert f"helm test gpus --namespace {SYSTEM}" in notes
    (label,) = (line.split() for line in notes.splitlines() if "kubectl label" in line)
    # From now on the namespace enforces PodSecurity, for pods of hooks, too.
    cluster.admin.run(*label[1:])
    installed = wanted_rows(everything(cluster) - before)
    assert ("Deployment", SYSTEM, "fairlead-console") in installed
    assert ("CustomResourceDefinition", "<none>", TREES) in installed
    hooks = {f"fairlead-{what}" for what in ("doctor", "upgrade", "uninstall")}
    assert not {row for row in installed if row[2] in hooks}

    _check_others_are_refused(helm, cluster, chart)
    _check_the_doctor(helm, cluster)
    now = wanted_rows(everything(cluster) - before)
    assert now == installed, "the refused ones wrote nothing, and nothing of the test is left"
    _check_the_first_administrator(cluster)

    webhook = ("validatingwebhookconfiguration", "fairlead-quota-tree")
    authority = base64.b64encode(cluster.authority.read_bytes()).decode()
    place = {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": authority}
    cluster.admin.run("patch", *webhook, "--type=json", "-p", json.dumps([place]))
    _check_losses_are_refused(helm, cluster, chart)
    settings = ("--set", "parts.console=false", "--set", "replicas=3")
    with played(cluster, "fairlead-upgrade") as check:
        helm.run("upgrade", "gpus", chart, "-n", SYSTEM, *settings)
    assert check.result() == "version `0.1.0` may follow `0.1.0`\n".replace("0.1.0", __version__)
    gone = installed - everything(cluster)
    parts = ("sign-in", "key", "tree", "people", "data", "operations")
    rights = {f"fairlead-console-{part}" for part in parts}
    limits = {f"fairlead-console-{what}" for what in ("secrets", "accounts", "tokens")}
    names = {"fairlead-console", "fairlead-reader", *rights, *limits}
    # The API server's record of the Service's address has the address for a name.
    assert {row[2] for row in gone if row[0] != "IPAddress"} == names
    path = "-o=jsonpath={.spec.replicas}"
    found = cluster.admin.run("get", "deployment", "fairlead-quota-controller", "-n", SYSTEM, path)
    assert found == "3"
    name = ("get", "user", "admin", "-n", "kube-ai", "-o=jsonpath={.spec.userName}")
    assert cluster.admin.run(*name) == "Ada", "an upgrade does not overwrite an edit"
    path = "-o=jsonpath={.webhooks[0].clientConfig.caBundle}"
    assert cluster.admin.run("get", *webhook, path) == authority, "written at run time, and kept"

    _check_the_end(helm, cluster, chart)
    left = everything(cluster) - before
    assert left == KEPT, "it is kept, and nothing else"
    (bob,) = cluster.admin.get("users", "-n", "kube-ai", "--field-selector=metadata.name=bob")
    assert "finalizers" not in bob["metadata"], "a later `kubectl delete` is not stuck"


def _check_the_first_administrator(cluster: ControlPlane) -> None:
    """Made by the release, and edited afterwards; and a user as the people controller holds one."""
    (admin,) = cluster.admin.get("users", "-n", "kube-ai")
    assert (admin["spec"]["userId"], admin["spec"]["apiRoles"]) == ("admin", ["admin"])
    assert admin["spec"]["deletable"] is False
    # No kubelet runs the server that answers; the next upgrade writes it again.
    cluster.admin.run("delete", "validatingwebhookconfiguration", "fairlead-people")
    edit = json.dumps({"spec": {"userName": "Ada"}})
    cluster.admin.run("patch", "user", "admin", "-n", "kube-ai", "--type=merge", "-p", edit)
    mine = {"fairlead.io/user": "bob"}
    spec = {"userName": "Bob", "userId": "bob", "apiRoles": ["researcher"]}
    meta = {"name": "bob", "namespace": "kube-ai"}
    group = "rbac.authorization.k8s.io"
    cluster.admin.create(
        [
            {
                "apiVersion": "fairlead.io/v1",
                "kind": "User",
                "metadata": {**meta, "finalizers": ["fairlead.io/user"]},
                "spec": spec,
            },
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**meta, "labels": mine}},
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "bob:clusterRole:fairlead-researcher-cluster", "labels": mine},
                "roleRef": {
                    "apiGroup": group,
                    "kind": "ClusterRole",
                    "name": "fairlead-researcher-cluster",
                },
                "subjects": [{"kind": "ServiceAccount", **meta}],
            },
        ]
    )


def ensure_namespace(cluster: ControlPlane, name: str = SYSTEM) -> None:
    """As `helm install --create-namespace` makes it, which does not remove it."""
    if not cluster.admin.get("namespaces", f"--field-selector=metadata.name={name}"):
        cluster.admin.run("create", "namespace", name)
    wait_until("the namespace is complete", lambda: cluster.has_completed(name))


def wanted_rows(rows: set[Row]) -> set[Row]:
    """Without what controllers make of the objects, and without Helm's own records."""
    made = ("Pod", "ReplicaSet", "ControllerRevision", "Endpoints", "EndpointSlice", "Secret")
    return {row for row in rows if row[0] not in made}


def _check_others_are_refused(helm: Helm, cluster: ControlPlane, chart: str) -> None:
    answer = helm.refusal("install", "second", chart, "-n", SYSTEM)
    assert "cannot be imported into the current release" in answer
    assert 'must equal "second": current value is "gpus"' in answer
    answer = fairlead_answer(cluster.kubeconfig, "install").stderr
    assert "namespace `fairlead-nodes` belongs to the Helm release `gpus`" in answer
    assert "use Helm for its release" in answer


def _check_the_doctor(helm: Helm, cluster: ControlPlane) -> None:
    """Its account may read all that is judged, but for writes and Secrets, on purpose."""
    with played(cluster, "fairlead-doctor") as doctor:
        answer = helm.refusal("test", "gpus", "-n", SYSTEM)
    assert "fairlead-doctor failed" in answer
    lines = doctor.result().splitlines()
    assert any("ok " in line and "by Helm: release `gpus`" in line for line in lines), lines
    bad = {line.split()[1] for line in lines if line.startswith("BAD")}
    assert bad == {"ready", "lease", "certificate"}, "no process runs here"
    unknown = [line for line in lines if line.startswith("?")]
    reasons = {
        "changes": "cannot patch",
        "certificate": 'cannot get resource "secrets"',
        "sign-in": 'secrets "fairlead-sign-in-key" is forbidden',
    }
    assert {line.split()[1] for line in unknown} == reasons.keys(), unknown
    for line in unknown:
        assert reasons[line.split()[1]] in line, line


def _check_losses_are_refused(helm: Helm, cluster: ControlPlane, chart: str) -> None:
    """The hook's account may read all that is compared; a refusal changes no object."""
    present = wanted_rows(everything(cluster))
    record = ("configmap", "fairlead-release", "-n", SYSTEM)
    newer = json.dumps({"data": {"version": "9.1.0", "oldest": "9.0.0"}})
    older = json.dumps({"data": {"version": __version__, "oldest": OLDEST_VERSION}})
    cluster.admin.run("patch", *record, "-p", newer)
    with played(cluster, "fairlead-upgrade") as check:
        answer = helm.refusal("rollback", "gpus", "1", "-n", SYSTEM)
    assert "fairlead-upgrade" in answer and "ailed" in answer
    cluster.admin.run("patch", *record, "-p", older)
    # Helm regards the release as one that is being rolled back, until a revision is in force again.
    with played(cluster, "fairlead-upgrade"):
        helm.run("rollback", "gpus", "1", "-n", SYSTEM)
    cluster.admin.run("delete", "validatingwebhookconfiguration", "fairlead-people")
    sentence = f"version `{__version__}` does not understand what `9.1.0` has written"
    assert sentence in check.result()
    without = ("--set", "parts.people=false", "--set", "parts.quota=false")
    with played(cluster, "fairlead-upgrade") as check:
        answer = helm.refusal("upgrade", "gpus", chart, "-n", SYSTEM, *without)
    assert "fairlead-upgrade" in answer and "ailed" in answer
    assert "bob" in check.result(), "no people controller would let it be deleted"
    assert wanted_rows(everything(cluster)) == present


def _check_the_end(helm: Helm, cluster: ControlPlane, chart: str) -> None:
    """Refused while a pod waits for quota; with a value the pod is let go first."""
    cluster.admin.run("create", "namespace", "team")
    cluster.admin.run("label", "namespace", "team", "fairlead.io/quota=enforced")
    wait_until("a pod gets the gate", lambda: has_gated_pod(cluster), 60)
    cluster.admin.create([HELD_JOB])
    present = everything(cluster)
    with played(cluster, "fairlead-uninstall") as end:
        answer = helm.refusal("uninstall", "gpus", "-n", SYSTEM)
    assert "fairlead-uninstall" in answer and "ailed" in answer
    assert "1 pod waits at the scheduling gate `fairlead.io/quota`: team/p" in end.result()
    assert "default/held" in end.result()
    assert wanted_rows(everything(cluster)) == wanted_rows(present), "nothing was removed"

    # Helm regards the release as one that is being uninstalled, until a revision is in force again.
    with played(cluster, "fairlead-upgrade"):
        helm.run("rollback", "gpus", "5", "-n", SYSTEM)
    releasing = ("--reuse-values", "--set", "uninstall.releaseWaiting=true")
    with played(cluster, "fairlead-upgrade"):
        helm.run("upgrade", "gpus", chart, "-n", SYSTEM, *releasing)
    with played(cluster, "fairlead-uninstall") as end:
        helm.run("uninstall", "gpus", "-n", SYSTEM, "--wait")
    lines = end.result().splitlines()
    first, last = lines[0], lines[-1]
    assert first.startswith("removed ValidatingWebhookConfiguration "), "admission ends first"
    assert last == "the rest is Helm's"
    assert {"released pod team/p", "released job default/held"} < set(lines)
    withdrawn = [line for line in lines if line.startswith("withdrew ")]
    assert withdrawn == [
        "withdrew ClusterRoleBinding bob:clusterRole:fairlead-researcher-cluster",
        "withdrew ServiceAccount kube-ai/bob",
    ]
    assert "released User kube-ai/bob" in lines
    assert lines.index("released pod team/p") > max(
        place for place, line in enumerate(lines) if line.startswith("removed Deployment")
    ), "a quota controller that runs would hold it back again"
    cluster.admin.run("delete", "job", "held")
    cluster.admin.run("delete", "namespace", "team")


@pytest.mark.parametrize("helm", ["helm4"], indirect=True)
def test_another_programs_definition_is_used_and_never_changed(
    helm: Helm, cluster: ControlPlane, chart: str
) -> None:
    """And so is another program's users namespace."""
    ensure_namespace(cluster, OTHER)
    ensure_namespace(cluster, "kube-ai")
    theirs = ("--set", "usersNamespace.create=false")
    install_foreign_definition(cluster, "Namespaced")
    before = everything(cluster)
    answer = helm.refusal("install", "gpus", chart, "-n", OTHER, *theirs)
    assert f'CustomResourceDefinition "{TREES}"' in answer and "cannot be imported" in answer
    assert everything(cluster) == before, "nothing was written"
    path = ("get", "crd", TREES, "-o", "jsonpath={.metadata.generation} {.metadata.labels}")
    found = cluster.admin.run(*path)
    helm.run("install", "gpus", chart, "-n", OTHER, *theirs, "--set", "crds.enabled=false")
    assert cluster.admin.run(*path) == found
    answer = fairlead_answer(cluster.kubeconfig, "doctor").stdout
    assert "Fairlead is installed by Helm: release `gpus`" in answer, "found by Helm's annotation"
    assert f"definition `{TREES}` exists without the subresource `status`" in answer
    with played(cluster, "fairlead-uninstall") as end:
        helm.run("uninstall", "gpus", "-n", OTHER, "--wait")
    assert "removed ValidatingWebhookConfiguration fairlead-quota-tree" in end.result()
    assert everything(cluster) == before


def test_helm_takes_over_nothing_that_fairlead_install_wrote(
    cluster: ControlPlane, chart: str, tmp_path: Path
) -> None:
    cluster.admin.run("delete", "namespace", SYSTEM, "--ignore-not-found")
    answer = fairlead_answer(cluster.kubeconfig, "install", "--wait=0")
    assert not answer.returncode, answer.stderr
    before = everything(cluster)
    for name in HELMS:
        helm = Helm(name, tmp_path, cluster.kubeconfig)
        answer = helm.refusal("install", "gpus", chart, "-n", SYSTEM)
        assert "invalid ownership metadata" in answer
    assert everything(cluster) == before, "nothing was written"
    answer = fairlead_answer(cluster.kubeconfig, "uninstall", "--delete-data")
    assert not answer.returncode, answer.stderr


def test_a_scheduler_newer_than_the_server_is_refused_where_a_server_is_asked(
    cluster: ControlPlane, chart: str, tmp_path: Path
) -> None:
    """In the words of `fairlead install`. Rendered for no cluster, the version is unknown."""
    ensure_namespace(cluster)
    minor = json.loads(cluster.admin.run("get", "--raw", "/version"))["minor"]
    newer, same = "v1.99.0", f"v1.{minor}.9"
    name = "registry.example.com:5000/kube-scheduler"
    image = f"{name}:{newer}@sha256:0"
    words = f"kube-scheduler 1.99 of `{image}` is newer than the API server 1.{minor}"
    fitting = f"--set kubeSchedulerImage={name}:v1.{minor}.PATCH"
    setting = f"--set=kubeSchedulerImage={image}"
    answer = fairlead_answer(cluster.kubeconfig, "install", setting, "--dry-run").stderr
    assert answer == f"error: {words}\nhint: `{fitting}`\n"
    for each in HELMS:
        helm = Helm(each, tmp_path, cluster.kubeconfig)
        dry = ("install", "gpus", chart, "-n", SYSTEM, "--dry-run=server")
        assert f"{words}: {fitting}" in helm.refusal(*dry, setting)
        for good in (f"--set=kubeSchedulerImage={name}:{same}", "--set=scheduler=control-plane"):
            helm.run(*dry, setting, good)
        Helm(each, tmp_path).run("template", "gpus", chart, "-n", SYSTEM, setting)


def test_all_objects_are_valid(cluster: ControlPlane, chart: str, tmp_path: Path) -> None:
    """Strictly, by the API server itself, for each kind of admission and of scheduler, with other
    values drawn at random.
    """
    ensure_namespace(cluster)
    cluster.admin.run("create", "namespace", "fairlead-nodes")
    cluster.admin.run("create", "namespace", "kube-ai")
    helm = Helm("helm3", tmp_path)
    for admission, scheduler in product(("policies", "webhooks"), ("own", "control-plane")):
        parts = [f"parts.{name}={random.choice(('true', 'false'))}" for name in PARTS]
        texts = ["prometheus=http://monitor:9090", "runtimeClass=nvidia", "gpuSource=none"]
        others = [f"replicas={random.randint(1, 10)}", *random.sample(texts, 2), *parts]
        values = ",".join([f"admission={admission}", f"scheduler={scheduler}", *others])
        print(values)
        text = helm.run("template", "gpus", chart, "-n", SYSTEM, "--no-hooks", "--set", values)
        strictly = ("--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
        answer = cluster.admin.run("apply", *strictly, stdin=text)
        assert answer.count("serverside-applied (server dry run)") == text.count("\nkind: ")
    cluster.admin.run("delete", "namespace", "fairlead-nodes", "kube-ai")
