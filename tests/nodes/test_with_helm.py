"""The chart on three real nodes, with Helm 3 and Helm 4: installed, tested by `helm test`, removed.

The commands are those of docs/how-to/helm.md. A run tries one of the two.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.kube.helm import HELMS, Helm, packed_chart
from tests.nodes.cluster import FAIRLEAD_IMAGE, SYSTEM, Cluster, is_true
from tests.turns import in_turn
from tests.waiting import wait_until

IN = f"--namespace={SYSTEM}"


@pytest.mark.parametrize("name", in_turn(HELMS, 2))
def test_a_release_is_ready_tested_and_removed(cluster: Cluster, tmp_path: Path, name: str) -> None:
    admin, helm = cluster.plane.admin, Helm(name, tmp_path, cluster.plane.kubeconfig)
    chart = str(packed_chart(tmp_path))
    labels = ("nvidia.com/gpu.present=true", "cgpu=true")
    admin.run("label", "nodes", "--all", "--overwrite", *labels)
    chosen = ("--create-namespace", f"--set=image={FAIRLEAD_IMAGE}", "--wait", "--timeout=110s")
    helm.run("install", "fairlead", chart, IN, *chosen)
    # Helm waits for most pods of a DaemonSet, not for all.
    wait_until("every pod is Ready", lambda: all_ready(cluster), 60)
    label = ("fairlead.io/installation=system", "pod-security.kubernetes.io/enforce=restricted")
    admin.run("label", "namespace", SYSTEM, *label)
    found = json.loads(cluster.fairlead("doctor", "-o", "json"))["items"]
    assert [each["check"] for each in found if each["state"] != "ok"] == ["prometheus"]
    assert "Phase:          Succeeded" in helm.run("test", "fairlead", IN)

    helm.run("uninstall", "fairlead", IN, "--wait")
    wait_until("no pod is left", lambda: not cluster.own_pods(), 60)
    # These stay, as the page lists them.
    admin.delete("namespace", SYSTEM)
    admin.delete("crd", "elasticquotatrees.scheduling.sigs.k8s.io")
    kinds = "clusterrole,clusterrolebinding,validatingwebhookconfiguration,namespace,crd"
    policies = "validatingadmissionpolicy,mutatingadmissionpolicy"
    names = admin.run("get", f"{kinds},{policies}", "--no-headers", "-o", "name").splitlines()
    assert [each for each in names if "fairlead" in each] == []


def all_ready(cluster: Cluster) -> bool:
    pods = cluster.own_pods()
    return len(pods) > len(cluster.nodes) and all(is_true(pod, "Ready") for pod in pods)
