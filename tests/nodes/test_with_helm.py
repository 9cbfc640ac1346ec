"""The chart on three real nodes, with Helm 3 and Helm 4: from its installation to its removal.

The chart and the image come from a bundle: docs/get-started/without-internet.md is typed first. The
commands of Helm are those of that page and of docs/how-to/helm.md. A run tries one of the two.
"""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from pathlib import Path

import pytest
from tests.kube.helm import HELMS, Helm
from tests.nodes.cluster import NEWER, NEWER_IMAGE, SYSTEM, Cluster, is_true
from tests.nodes.offline import typed_page
from tests.nodes.shared_pods import complaints, running_versions, still_shared
from tests.turns import in_turn
from tests.waiting import wait_until

from fairlead import __version__

pytestmark = pytest.mark.turns(6, 0)

PAGE = Path(__file__).parents[2] / "docs" / "get-started" / "without-internet.md"
IN = f"--namespace={SYSTEM}"


@pytest.mark.parametrize("name", in_turn(HELMS, 2))
def test_a_release_is_ready_tested_and_removed(cluster: Cluster, tmp_path: Path, name: str) -> None:
    admin, helm = cluster.plane.admin, Helm(name, tmp_path, cluster.plane.kubeconfig)
    labels = ("nvidia.com/gpu.present=true", "cgpu=true")
    admin.run("label", "nodes", "--all", "--overwrite", *labels)
    with typed_page(cluster, tmp_path / "offline") as offline:
        chart = offline.chart
        helm.run(*install_words(chart, offline.image))
        # Helm waits for most pods of a DaemonSet, not for all; each node pulls the image.
        wait_until("every pod is Ready", lambda: all_ready(cluster), 180)
    label = ("fairlead.io/installation=system", "pod-security.kubernetes.io/enforce=restricted")
    admin.run("label", "namespace", SYSTEM, *label)
    assert complaints(cluster) == []
    still_shared(admin)
    assert "Phase:          Succeeded" in helm.run("test", "fairlead", IN)

    newer = str(of_version(chart, NEWER))
    waits = ("--wait", "--timeout=180s")
    words = ("--reset-then-reuse-values", f"--set=image={NEWER_IMAGE}")
    helm.run("upgrade", "fairlead", newer, IN, *words, *waits)
    wait_until("every pod is newer", lambda: all_of_version(cluster, NEWER), 180)
    still_shared(admin)
    helm.run("rollback", "fairlead", "1", IN, *waits)
    wait_until("every pod is older again", lambda: all_of_version(cluster, __version__), 180)
    still_shared(admin)
    assert complaints(cluster) == []

    helm.run("uninstall", "fairlead", IN, "--wait")
    wait_until("no pod is left", lambda: not cluster.own_pods(), 60)
    # These stay, as the page lists them.
    admin.delete("namespace", SYSTEM)
    admin.delete("crd", "elasticquotatrees.scheduling.sigs.k8s.io")
    admin.delete("crd", "users.fairlead.io", "usergroups.fairlead.io")
    admin.delete("namespace", "kube-ai")
    kinds = "clusterrole,clusterrolebinding,validatingwebhookconfiguration,namespace,crd"
    policies = "validatingadmissionpolicy,mutatingadmissionpolicy"
    names = admin.run("get", f"{kinds},{policies}", "--no-headers", "-o", "name").splitlines()
    assert [each for each in names if "fairlead" in each] == []


def all_ready(cluster: Cluster) -> bool:
    pods = cluster.own_pods()
    return len(pods) > len(cluster.nodes) and all(is_true(pod, "Ready") for pod in pods)


def all_of_version(cluster: Cluster, version: str) -> bool:
    return running_versions(cluster) == {version} and all_ready(cluster)


def install_words(chart: Path, image: str) -> list[str]:
    """The words of the page after `helm`; its chart is this file, its image has this name."""
    (line,) = re.findall(r"^\$ helm (install .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = f"chart/fairlead-{__version__}.tgz"
    words = shlex.split(line)
    printed = f"image=registry.example.com/fairlead:{__version__}"
    others = {named: str(chart), printed: f"image={image}"}
    assert others.keys() <= set(words)
    return [others.get(word, word) for word in words]


def of_version(chart: Path, version: str) -> Path:
    """The same chart with another version."""
    other = chart.with_name(f"fairlead-{version}.tgz")
    with tarfile.open(chart) as old, tarfile.open(other, "w:gz") as new:
        for member in old:
            source = old.extractfile(member)
            content = source.read() if source else b""  # a folder has none
            if member.name == "fairlead/Chart.yaml":
                content = content.replace(__version__.encode(), version.encode())
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    return other
