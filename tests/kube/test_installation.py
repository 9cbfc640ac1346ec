"""`fairlead install`, `upgrade` and `uninstall` on a real API server: the same end after every
interruption, no write where nothing changes, and no trace after the removal.

The oracles are kubectl's own lists: every object of every kind, and their resource versions.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.cut_target import CutOffError, CutTarget, most_writes
from tests.kube.installed_objects import has_gated_pod, install_foreign_definition
from tests.kube.kubectl import KubectlError
from tests.kube.servers import fairlead_answer, run_fairlead
from tests.waiting import wait_until

from fairlead import __version__
from fairlead.apps.installation.installer import Installer, Wanted
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.queries.installation_target import KubeInstallationTarget
from fairlead.errors import Forbidden, UserError
from fairlead.model.actions import Manifest, object_ref
from fairlead.model.installation import Installation, Parts
from fairlead.wire.installation.components import installed_objects, namespaces

SYSTEM, NODE_SPACE = "fairlead-system", "fairlead-nodes"
NOT_COMPARED = ("events", "leases", "componentstatuses")
"""What a cluster writes on its own at any time."""
CUTS = 4
"""Writes of an installation after each of which its run ends."""
WANTED = Wanted(__version__, Installation())
Row = tuple[str, ...]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as plane:
        yield plane


def fairlead(cluster: ControlPlane, *words: str, status: int = 0) -> str:
    """Output and messages of the command; its exit status is `status`."""
    return run_fairlead(cluster.kubeconfig, *words, status=status)


def everything(cluster: ControlPlane) -> dict[Row, str]:
    """The generation, or else the resource version, of all objects of all kinds, by kind, namespace
    and name.
    """
    kinds = cluster.admin.run("api-resources", "--verbs=list", "-o", "name").split()
    wanted = ",".join(each for each in kinds if each.partition(".")[0] not in NOT_COMPARED)
    columns = (
        "custom-columns=A:.apiVersion,K:.kind,S:.metadata.namespace,N:.metadata.name,"
        "G:.metadata.generation,V:.metadata.resourceVersion"
    )
    lines = cluster.admin.run("get", wanted, "-A", "--no-headers", "-o", columns)
    rows = [line.split() for line in lines.splitlines()]
    # Controllers write the status of what has a generation.
    return {tuple(row[:4]): row[5] if row[4] == "<none>" else row[4] for row in rows}


def installed(cluster: ControlPlane) -> dict[Row, str]:
    """As `everything`, of what the inventory lists, and of itself."""
    text = cluster.admin.run(
        "get", "configmap", "fairlead-installation", "-n", SYSTEM, "-o", "yaml"
    )
    rows = yaml.safe_load(yaml.safe_load(text)["data"]["objects"])
    found = everything(cluster)
    keys = [(row[0], row[1], row[2] or "<none>", row[3]) for row in rows]
    own = ("v1", "ConfigMap", SYSTEM, "fairlead-installation")
    return {each: found[each] for each in (*keys, own)}


def api(kubeconfig: Path) -> KubeBlocking:
    connection = find_connection(str(kubeconfig))
    assert connection is not None
    return KubeBlocking(connection)


def installer_of(kubeconfig: Path) -> Installer:
    return Installer(KubeInstallationTarget(api(kubeconfig)), str, time.time, time.sleep)


def test_the_same_end_after_every_interruption_and_no_trace_after_the_removal(
    cluster: ControlPlane,
) -> None:
    before = everything(cluster)
    planned = fairlead(cluster, "install", "--dry-run")
    assert f"create Namespace {SYSTEM}" in planned
    assert f"create Namespace {NODE_SPACE}" in planned
    assert everything(cluster).keys() == before.keys(), "a dry run writes nothing"

    for run in range(CUTS):
        with pytest.raises(CutOffError):
            _run_to_a_write(cluster, WANTED, run)
    fairlead(cluster, "install", "--wait=0")
    wanted = {object_ref(each) for each in WANTED.objects}
    first = installed(cluster)
    assert len(everything(cluster).keys() - before.keys()) >= len(wanted)

    again = fairlead(cluster, "install", "--wait=0")
    assert again.endswith(f"fairlead {__version__}: {len(wanted)} objects\n")
    assert installed(cluster) == first, "a second run writes nothing"
    unchanged = fairlead(cluster, "upgrade", "--dry-run").splitlines()
    assert unchanged == [f"{len(wanted)} objects do not change"]

    other = fairlead(cluster, "install", "--set", "parts.console=false", status=1)
    assert "`fairlead upgrade` changes it" in other
    chosen = Installation(parts=Parts(console=False), replicas=3)
    newer = Wanted("99.0.0", replace(chosen, image="fairlead:99.0.0"))
    _change_with_an_end_after_each_write(cluster, newer)
    upgraded = installed(cluster)
    gone = {row[1] + " " + row[3] for row in first.keys() - upgraded.keys()}
    assert "Deployment fairlead-console" in gone
    assert "ServiceAccount fairlead-reader" in gone
    changed = {row for row in upgraded if upgraded[row] != first.get(row)}
    assert {row[1:3] for row in changed} == {
        ("ConfigMap", SYSTEM),
        ("Deployment", SYSTEM),
        ("DaemonSet", NODE_SPACE),
    }
    assert len(changed) == 8, "an upgrade writes only what changes"
    _change_with_an_end_after_each_write(cluster, Wanted(__version__, chosen))
    back = installed(cluster)
    assert back.keys() == upgraded.keys()
    assert {row for row in back if back[row] != upgraded[row]} == changed
    _check_an_upgrade_without_a_change(cluster)

    _refused_while_a_pod_waits(cluster)
    assert "is removed" in fairlead(cluster, "uninstall", "--delete-data", "--release-waiting")
    gates = cluster.admin.run("get", "pod", "p", "-n", "team", "-o", "jsonpath={.spec}")
    assert "schedulingGates" not in gates
    cluster.admin.run("delete", "namespace", "team")
    assert everything(cluster).keys() == before.keys(), "nothing is left"


def _run_to_a_write(cluster: ControlPlane, wanted: Wanted, run: int) -> None:
    """Raises CutOffError unless the writes of this run were enough to the end."""
    installer = Installer(CutTarget(api(cluster.kubeconfig), run), str, time.time, time.sleep)
    installer.carry_out(installer.plan(wanted, may_go_back=True))


def _change_with_an_end_after_each_write(cluster: ControlPlane, wanted: Wanted) -> None:
    for run in range(40):
        try:
            _run_to_a_write(cluster, wanted, run)
        except CutOffError:
            continue
        assert run >= 7 // most_writes(), (
            "the inventory twice, and each changed object, are written"
        )
        return
    pytest.fail("40 runs did not suffice")


def _check_an_upgrade_without_a_change(cluster: ControlPlane) -> None:
    before = installed(cluster)
    assert "objects do not change" in fairlead(cluster, "upgrade", "--dry-run")
    fairlead(cluster, "upgrade", "--wait=0")
    assert installed(cluster) == before, "an upgrade without a change writes nothing"


def _refused_while_a_pod_waits(cluster: ControlPlane) -> None:
    """The shipped policy gives the pod its gate; the removal names the pod and removes nothing."""
    cluster.admin.run("create", "namespace", "team")
    cluster.admin.run("label", "namespace", "team", "fairlead.io/quota=enforced")
    wait_until("a pod gets the gate", lambda: has_gated_pod(cluster), 60)
    present = everything(cluster).keys()
    answer = fairlead(cluster, "uninstall", status=1)
    assert "1 pod waits at the scheduling gate `fairlead.io/quota`: team/p" in answer
    assert everything(cluster).keys() == present


def test_what_cannot_be_finished_is_refused_before_the_first_write(cluster: ControlPlane) -> None:
    admin = cluster.admin
    before = everything(cluster).keys()
    stranger = installer_of(cluster.write_user_kubeconfig("stranger"))
    with pytest.raises(Forbidden, match='"stranger" cannot get resource "namespaces"'):
        stranger.plan(WANTED)

    install_foreign_definition(cluster, "Cluster")
    answer = fairlead(cluster, "install", status=1)
    assert "exists as Cluster `ElasticQuotaTree`, which does not fit" in answer
    admin.run("delete", "crd", "elasticquotatrees.scheduling.sigs.k8s.io")

    admin.run("create", "namespace", NODE_SPACE)
    answer = fairlead(cluster, "install", status=1)
    assert f"namespace `{NODE_SPACE}` exists, and was not made for Fairlead" in answer
    assert f"`kubectl label namespace {NODE_SPACE} fairlead.io/installation=nodes`" in answer
    admin.run("delete", "namespace", NODE_SPACE)

    admin.run("create", "namespace", SYSTEM)
    admin.run("annotate", "namespace", SYSTEM, "meta.helm.sh/release-name=mine")
    answer = fairlead(cluster, "install", status=1)
    assert f"namespace `{SYSTEM}` belongs to the Helm release `mine`" in answer
    admin.run("annotate", "namespace", SYSTEM, "meta.helm.sh/release-name-")

    record = {"release": "fairlead", "version": __version__, "definitions": "true", "values": "{}"}
    data = [f"--from-literal={key}={value}" for key, value in record.items()]
    admin.run("create", "configmap", "fairlead-release", "-n", SYSTEM, *data)
    listed = f'[["v1", "Namespace", "", "{SYSTEM}"]]'
    inventory = {"version": __version__, "state": "complete", "values": "", "objects": listed}
    forged = [f"--from-literal={key}={value}" for key, value in inventory.items()]
    admin.run("create", "configmap", "fairlead-installation", "-n", SYSTEM, *forged)
    answer = fairlead(cluster, "uninstall", status=1)
    assert "no object that `fairlead install` wrote" in answer, "no administrator labelled it"
    admin.run("delete", "configmap", "fairlead-installation", "-n", SYSTEM)
    answer = fairlead(cluster, "install", status=1)
    assert f"namespace `{SYSTEM}` exists, and was not made for Fairlead" in answer
    admin.run("label", "namespace", SYSTEM, "fairlead.io/installation=system")
    answer = fairlead(cluster, "install", status=1)
    assert "Helm has installed Fairlead here: release `fairlead`" in answer

    admin.run("patch", "ns", SYSTEM, "-p", '{"metadata": {"finalizers": ["example.com/held"]}}')
    admin.run("delete", "namespace", SYSTEM, "--wait=false")
    answer = fairlead(cluster, "install", status=1)
    assert f"namespace `{SYSTEM}` is being deleted" in answer
    admin.run("patch", "ns", SYSTEM, "-p", '{"metadata": {"finalizers": null}}')
    admin.run("wait", "--for=delete", f"namespace/{SYSTEM}", "--timeout=60s")
    assert everything(cluster).keys() == before

    answer = fairlead(cluster, "uninstall", status=1)
    assert "no object that `fairlead install` wrote" in answer
    answer = fairlead(cluster, "upgrade", status=1)
    assert "there is no installation to upgrade" in answer


@pytest.mark.turns(2, 1)
def test_other_namespaces_are_found_and_the_one_of_the_node_agent_may_change(
    cluster: ControlPlane,
) -> None:
    """The DaemonSets are in their new namespace before the old one is removed."""
    before = everything(cluster)
    chosen = [f"--set={each}" for each in ("namespace=one", "nodeNamespace=two", "replicas=1")]
    fairlead(cluster, "install", *chosen, "--wait=0")
    first = everything(cluster)
    assert {row[2] for row in first.keys() - before.keys()} == {
        "<none>",
        "kube-ai",
        "kube-system",
        "one",
        "two",
    }
    assert "fairlead-installation" in {row[3] for row in first if row[2] == "one"}
    again = fairlead(cluster, "upgrade", "--dry-run").splitlines()
    assert len(again) == 1 and again[0].endswith("objects do not change")

    for verb in ("install", "upgrade"):
        words = ("--set=namespace=three", "--set=nodeNamespace=two", "--set=replicas=1")
        answer = fairlead(cluster, verb, *words, status=1)
        assert "Fairlead is installed in namespace `one`, and cannot be moved to `three`" in answer
    cluster.admin.run("create", "namespace", "tenant")
    forged = ("create", "configmap", "fairlead-installation", "-n", "tenant")
    cluster.admin.run(*forged, "--from-literal=objects=[]")
    found = doctor(cluster, status=1)
    assert states(found)["namespace"] == {"ok"}
    assert states(found)["objects"] == states(found)["pod-security"] == {"ok"}
    assert "no process holds one/fairlead-quota" in sentences(found, "lease", "fail")

    lines = fairlead(cluster, "upgrade", "--set=nodeNamespace=three", "--wait=0").splitlines()
    for name in ("fairlead-node-agent", "fairlead-gpu-exporter"):
        (new,) = (n for n, line in enumerate(lines) if line.endswith(f"DaemonSet three/{name}"))
        (old,) = (n for n, line in enumerate(lines) if line == f"removed DaemonSet two/{name}")
        assert new < old
    cluster.admin.run("wait", "--for=delete", "namespace/two", "--timeout=60s")
    assert "is removed" in fairlead(cluster, "uninstall", "--delete-data")
    cluster.admin.run("delete", "namespace", "tenant")
    assert everything(cluster).keys() == before.keys()


@pytest.mark.parametrize("admission", ["policies", "webhooks"])
def test_the_namespaces_admit_the_pods_of_the_installation(
    cluster: ControlPlane, admission: Any
) -> None:
    """`restricted` is enforced where no pod needs anything of its node. The API server warns of a
    workload whose pods it would refuse, and refuses the pods themselves.
    """
    chosen = Installation(admission=admission)
    cluster.admin.apply(namespaces(chosen))
    workloads = [each for each in installed_objects(chosen) if "template" in each.get("spec", {})]
    spaces = {each["metadata"]["namespace"] for each in workloads}
    assert spaces == {SYSTEM, NODE_SPACE}
    for each in workloads:
        cluster.admin.run(*TRIED, stdin=json.dumps(each))
        cluster.admin.run(*TRIED, stdin=json.dumps(_pod_of(each)))
    restricted = [each for each in workloads if each["metadata"]["namespace"] == SYSTEM]
    wrong = _pod_of(restricted[0])
    wrong["spec"]["securityContext"] = {"runAsUser": 0}
    with pytest.raises(KubectlError, match='violates PodSecurity "restricted:latest"'):
        cluster.admin.run(*TRIED, stdin=json.dumps(wrong))
    cluster.admin.run("delete", "namespace", SYSTEM, NODE_SPACE)


TRIED = ("create", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", "-")


def _pod_of(workload: Manifest) -> Manifest:
    """A pod of the workload that needs no ServiceAccount."""
    meta = {"name": "p", "namespace": workload["metadata"]["namespace"]}
    spec = copy.deepcopy(workload["spec"]["template"]["spec"])
    spec |= {"serviceAccountName": "default", "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_one_right_that_is_missing_is_named_and_nothing_is_written(cluster: ControlPlane) -> None:
    """A user who may do everything but write DaemonSets."""
    before = everything(cluster).keys()
    plain = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "almost"}}
    all_of = [
        {"apiGroups": [group], "resources": ["*"], "verbs": ["*"]}
        for group in (
            *(
                "",
                "policy",
                "networking.k8s.io",
                "rbac.authorization.k8s.io",
                "apiextensions.k8s.io",
            ),
            *("admissionregistration.k8s.io", "scheduling.sigs.k8s.io", "coordination.k8s.io"),
            "fairlead.io",
        )
    ]
    role = {
        **plain,
        "kind": "ClusterRole",
        "rules": [
            *all_of,
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
        ],
    }
    binding = {
        **plain,
        "kind": "ClusterRoleBinding",
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "almost",
        },
        "subjects": [{"kind": "User", "name": "almost"}],
    }
    cluster.admin.apply([role, binding])
    almost = installer_of(cluster.write_user_kubeconfig("almost"))
    with pytest.raises(UserError) as refused:
        almost.plan(WANTED)
    assert f"DaemonSet {NODE_SPACE}/fairlead-gpu-exporter: you may not" in refused.value.what
    assert refused.value.what.startswith("1 object is refused, and nothing was written:")
    cluster.admin.run("delete", "clusterrole,clusterrolebinding", "almost")
    assert everything(cluster).keys() == before


def doctor(cluster: ControlPlane, *words: str, status: int) -> list[tuple[str, str, str]]:
    """State, check and sentence of all findings, read as JSON; the exit status is `status`."""
    text = fairlead(cluster, "doctor", "-o", "json", *words, status=status)
    found = yaml.safe_load(text)
    assert found["ok"] == (status == 0)
    return [(each["state"], each["check"], each["sentence"]) for each in found["items"]]


def states(found: list[tuple[str, str, str]]) -> dict[str, set[str]]:
    """The states of each check."""
    return {name: {row[0] for row in found if row[1] == name} for _, name, _ in found}


def sentences(found: list[tuple[str, str, str]], check: str, state: str) -> str:
    return "\n".join(row[2] for row in found if row[:2] == (state, check))


@pytest.mark.turns(2, 0)
def test_the_doctor_of_a_ready_cluster_an_installation_and_a_broken_one(
    cluster: ControlPlane,
) -> None:
    """The control plane has no kubelets, so no workload becomes ready."""
    admin = cluster.admin
    before = everything(cluster).keys()
    ready = doctor(cluster, status=0)
    assert {state for state, _, _ in ready} <= {"ok", "warn"}, ready
    assert "`fairlead install` nor Helm has installed" in sentences(ready, "inventory", "ok")

    fairlead(cluster, "install", "--wait=0", "--set", "pullSecrets=[registry]")
    words = ("--docker-server=r.example", "--docker-username=ann", "--docker-password=x")
    admin.run("create", "secret", "docker-registry", "registry", "-n", SYSTEM, *words)
    written = everything(cluster)
    found = doctor(cluster, status=1)
    assert f"`registry` of namespace `{SYSTEM}`" in sentences(found, "pull-secret", "ok")
    missing = sentences(found, "pull-secret", "fail")
    assert "`registry` of namespace `fairlead-nodes` does not exist" in missing
    own = [row for row in written if row[3].startswith("fairlead")]
    now = everything(cluster)
    assert len(own) > 40
    assert {row: now[row] for row in own} == {row: written[row] for row in own}, (
        "nothing is written"
    )
    unready = sentences(found, "ready", "fail")
    assert f"Deployment {SYSTEM}/fairlead-console: 0 of " in unready
    assert f"Deployment {SYSTEM}/fairlead-quota-controller: 0 of 2 ready" in unready
    assert f"no process holds {SYSTEM}/fairlead-quota" in sentences(found, "lease", "fail")
    assert "ValidatingWebhookConfiguration" in sentences(found, "certificate", "fail")
    bad = {name for name, each in states(found).items() if "fail" in each}
    assert {check for _, check, text in found if "fairlead-sign-in-key" in text} == {"sign-in"}
    assert bad == {"ready", "lease", "certificate", "pull-secret", "sign-in"}, found

    admin.run("delete", "clusterrole", "fairlead-quota-controller")
    admin.run("scale", "deployment", "fairlead-quota-controller", "-n", SYSTEM, "--replicas=5")
    found = doctor(cluster, status=1)
    assert "ClusterRole fairlead-quota-controller" in sentences(found, "objects", "fail")
    changes = sentences(found, "changes", "fail")
    assert "fairlead-quota-controller" in changes and ".spec.replicas" in changes

    _check_a_reader(cluster)
    admin.run("patch", "ns", SYSTEM, "-p", '{"metadata": {"finalizers": ["example.com/held"]}}')
    admin.run("delete", "namespace", SYSTEM, "--wait=false")
    table = fairlead(cluster, "doctor", status=1)
    assert f"BAD    namespace       namespace `{SYSTEM}` is being deleted\n" in table
    assert table.endswith("\n`fairlead quota doctor` checks the quota tree and its controller.\n")

    admin.run("patch", "ns", SYSTEM, "-p", '{"metadata": {"finalizers": null}}')
    admin.run("wait", "--for=delete", f"namespace/{SYSTEM}", "--timeout=60s")
    kinds = {row[1] for row in written.keys() - before if row[2] == "<none>"}
    label = "app.kubernetes.io/part-of=fairlead"
    admin.run("delete", ",".join(sorted(kinds)), "-l", label, "--ignore-not-found")


def _check_a_reader(cluster: ControlPlane) -> None:
    """A user that may read some kinds: what is hidden is unknown, with the right that lacks."""
    kinds = "--resource=configmaps,namespaces"
    cluster.admin.run("create", "clusterrole", "some", "--verb=get,list", kinds)
    cluster.admin.run("create", "clusterrolebinding", "some", "--clusterrole=some", "--user=some")
    path = cluster.write_user_kubeconfig("some")
    answer = fairlead_answer(path, "doctor", "-o", "json")
    rows = [
        (row["state"], row["check"], row["sentence"])
        for row in yaml.safe_load(answer.stdout)["items"]
    ]
    found = states(rows)
    for check in ("nodes", "other-programs", "restarts", "lease", "objects"):
        assert found[check] == {"unknown"}, rows
    assert 'User "some" cannot list resource "nodes"' in sentences(rows, "nodes", "unknown")
    assert found["rights"] == {"warn"} and found["inventory"] == {"ok"}
    cluster.admin.run("delete", "clusterrole,clusterrolebinding", "some")
