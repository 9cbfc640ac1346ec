"""How does Kueue stand beside a test cluster, as the peer of quota? A process, its CRDs, a queue a namespace.

One-pod Jobs wait in queues on hold and are released at once. Its webhooks are left out: they default what the
Jobs here say themselves.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from tests.kube.addresses import free_port, is_listening
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.waiting import wait_until

TOOLS: Final = Path(__file__).resolve().parents[1] / "tools"
API: Final = "kueue.x-k8s.io/v1beta1"
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
Object = dict[str, Any]


def kueue_program() -> Path:
    """Built when it is not there yet, which takes minutes."""
    sys.path.insert(0, str(TOOLS))
    import build_kube
    import kube_programs

    build_kube.build_missing((kube_programs.KUEUE,))
    return Path(kube_programs.program_path("kueue"))


def _definitions() -> list[Object]:
    import build_kube
    import kube_programs

    folder = build_kube.module_dir(kube_programs.KUEUE) / "config/components/crd/bases"
    return [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))]


@contextmanager
def running_kueue(cluster: ControlPlane, namespaces: Sequence[str], cpu: str, qps: int) -> Iterator[Component]:
    """Kueue at work, with a queue on hold for each namespace, each with so much cpu."""
    program = kueue_program()
    cluster.admin.apply(_definitions())
    wait_until("its kinds are served", lambda: "workloads" in cluster.admin.run("api-resources", "--api-group=kueue.x-k8s.io"), seconds=60)
    folder = cluster.folder / "kueue"
    pair = cluster.issue("kueue-webhook", names=["127.0.0.1"])
    for part in ("metrics", "webhook"):
        (folder / part).mkdir(parents=True)
        shutil.copy(pair.certificate, folder / part / "tls.crt")
        shutil.copy(pair.key, folder / part / "tls.key")
    probe = free_port()
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{probe}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": free_port(), "host": "127.0.0.1", "certDir": str(folder / "webhook")},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": qps, "burst": 2 * qps},
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": ["batch/job"]},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    kubeconfig = cluster.write_user_kubeconfig("kueue", ["system:masters"])
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TMPDIR": str(folder), "KUBECONFIG": str(kubeconfig)}
    flags = [f"--config={folder / 'config.yaml'}", "--feature-gates=VisibilityOnDemand=false", "--zap-log-level=error"]
    component = Component("kueue", [str(program), *flags], cluster.logs / "kueue.log", environment)
    try:
        component.start()
        component.wait_until(lambda: is_listening(probe), 120)
        cluster.admin.apply([_object("ResourceFlavor", "default", {}), *(each for name in namespaces for each in _queues(name, cpu))])
        yield component
    finally:
        component.stop()


def release(cluster: ControlPlane, namespaces: Sequence[str], cpu: str) -> None:
    cluster.admin.apply([_cluster_queue(name, cpu, "None") for name in namespaces])


def _queues(namespace: str, cpu: str) -> list[Object]:
    local = _object("LocalQueue", "jobs", {"clusterQueue": namespace})
    local["metadata"]["namespace"] = namespace
    return [_cluster_queue(namespace, cpu, "Hold"), local]


def _cluster_queue(name: str, cpu: str, stop: str) -> Object:
    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    return _object(
        "ClusterQueue",
        name,
        {"namespaceSelector": {}, "stopPolicy": stop, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]},
    )


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
