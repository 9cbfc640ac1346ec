"""The objects of document 002: what its Helm chart of dcgm-exporter creates, how its Prometheus
finds that, and its pod that loads a card.

The images are Fairlead's. Two more things differ: the chart's `imagePullPolicy` was `Always`, and
nothing can be pulled here; Prometheus scrapes every second where the chart's ServiceMonitor has 15.
A Deployment is added, whose pods load their cards while there are requests, for the autoscaler at
the end of the document.
"""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import DEPLOY, of_file
from tests.kube.fairlead_images import EXPORTER, LOAD, ROOT
from tests.kube.kubelet import kubelet_folder

Object = dict[str, Any]
NAMESPACE = "default"
GPU = "nvidia.com/gpu"
RELEASE = "dcgm-exporter"
EXPORTER_PODS = f"app.kubernetes.io/name={RELEASE}"
_LABELS = {
    "app.kubernetes.io/name": RELEASE,
    "app.kubernetes.io/instance": RELEASE,
    "app.kubernetes.io/component": RELEASE,
}
_PORT = 9400
_PROBE = {
    "httpGet": {"path": "/health", "port": _PORT},
    "initialDelaySeconds": 5,
    "periodSeconds": 5,
}
EXPORTER_CONTAINER: Object = {
    "name": "exporter",
    "image": EXPORTER,
    "args": ["-f", "/etc/dcgm-exporter/dcp-metrics-included.csv"],
    "env": [
        {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
        {"name": "DCGM_EXPORTER_LISTEN", "value": f":{_PORT}"},
    ],
    "ports": [{"name": "metrics", "containerPort": _PORT}],
    "volumeMounts": [
        {
            "name": "pod-gpu-resources",
            "readOnly": True,
            "mountPath": "/var/lib/kubelet/pod-resources",
        }
    ],
    "securityContext": {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "capabilities": {"add": ["SYS_ADMIN"]},
    },
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
}
"""The default of the chart in the document's year."""
EXPORTER_OBJECTS: tuple[Object, ...] = (
    {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": RELEASE, "namespace": NAMESPACE},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": RELEASE, "namespace": NAMESPACE, "labels": _LABELS},
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": _LABELS},
                "spec": {
                    "serviceAccountName": RELEASE,
                    "volumes": [
                        {
                            "name": "pod-gpu-resources",
                            "hostPath": {"path": "/var/lib/kubelet/pod-resources"},
                        }
                    ],
                    "containers": [EXPORTER_CONTAINER],
                },
            },
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": RELEASE, "namespace": NAMESPACE, "labels": _LABELS},
        "spec": {"selector": _LABELS, "ports": [{"name": "metrics", "port": _PORT}]},
    },
)
TESTER = "dcgmproftester"


def tester(name: str = TESTER, seconds: int = 120) -> Object:
    """The document's pod; with another name and duration, one that works for less time."""
    container = {
        "name": "dcgmproftester11",
        "image": LOAD,
        "args": ["--no-dcgm-validation", "-t 1004", f"-d {seconds}"],
        "resources": {"limits": {GPU: 1}},
        "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}},
    }
    spec = {"restartPolicy": "OnFailure", "containers": [container]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


_SERVES = """while :; do
  until test -e /orders/requests; do sleep 0.2; done
  dcgmproftester11 --no-dcgm-validation "-t 1004" "-d 30" &
  while test -e /orders/requests && kill -0 $!; do sleep 0.2; done
  kill $!; wait $!
done"""
"""The container loads its card while there are requests, in runs of thirty seconds."""


def own_exporter() -> tuple[list[Object], str, str]:
    """The exporter's manifests of `deploy/` unchanged, their namespace, and the label that selects
    its nodes.
    """
    found = of_file("gpu-exporter.yaml")
    (daemon,) = (each for each in found if each["kind"] == "DaemonSet")
    terms = daemon["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    (asked,) = [
        each
        for each in terms["nodeSelectorTerms"][0]["matchExpressions"]
        if each["operator"] == "In"
    ]
    return found, daemon["metadata"]["namespace"], f"{asked['key']}={asked['values'][0]}"


def reported_load_pod() -> Object:
    """The pod of docs/how-to/gpu-load.md for nodes with played cards."""
    blocks = re.findall(
        r"^```yaml\n(.*?)^```",
        (ROOT / "docs" / "how-to" / "gpu-load.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    (pod,) = (found for found in map(yaml.safe_load, blocks) if "volumes" in found["spec"])
    return {**pod, "metadata": {**pod["metadata"], "namespace": NAMESPACE}}


def inference() -> Object:
    """A Deployment of pods with a card each, under the name that the shipped autoscaler names."""
    container = {
        "name": "main",
        "image": LOAD,
        "command": ["sh", "-c", _SERVES],
        "resources": {"limits": {GPU: 1}},
    }
    spec = {
        "containers": [{**container, "volumeMounts": [{"name": "orders", "mountPath": "/orders"}]}],
        "volumes": [{"name": "orders", "hostPath": {"path": "/var/lib/orders"}}],
        "terminationGracePeriodSeconds": 0,
    }
    labels = {"app": "inference"}
    wish = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "inference", "namespace": NAMESPACE},
        "spec": wish,
    }


def autoscaler(most: int) -> Object:
    """The shipped autoscaler for pods with a card each, with this maximum of pods."""
    (found,) = (
        each
        for each in yaml.safe_load_all(
            (DEPLOY / "autoscaling" / "hpa.yaml").read_text(encoding="utf-8")
        )
        if each["metadata"]["name"] == "inference"
    )
    return {**found, "spec": {**found["spec"], "maxReplicas": most}}


def orders(cluster: ControlPlane) -> Path:
    """The file whose existence means that there are requests, as seen from outside the node."""
    return cluster.folder / "node" / "disk" / "orders" / "requests"


def scraping(cluster: ControlPlane, *, honor_labels: bool) -> Object:
    """What the Prometheus operator makes of the chart's ServiceMonitor, except the discovery, which
    Debian's Prometheus does not support.
    """
    meta = "__meta_kubernetes"
    kept = {
        f"{meta}_service_label_app_kubernetes_io_name": RELEASE,
        f"{meta}_endpoint_port_name": "metrics",
    }
    shown = {
        "namespace": "namespace",
        "service": "service_name",
        "pod": "pod_name",
        "container": "pod_container_name",
    }
    return {
        "job_name": f"serviceMonitor/{NAMESPACE}/{RELEASE}/0",
        "honor_labels": honor_labels,
        "file_sd_configs": [{"files": [str(discovered(cluster))]}],
        "relabel_configs": [
            *(
                {"action": "keep", "source_labels": [label], "regex": value}
                for label, value in kept.items()
            ),
            *(
                {"source_labels": [f"{meta}_{label}"], "target_label": name}
                for name, label in shown.items()
            ),
            {"source_labels": [f"{meta}_service_name"], "target_label": "job"},
            {"source_labels": [f"{meta}_endpoint_port_name"], "target_label": "endpoint"},
        ],
    }


def discovered(cluster: ControlPlane) -> Path:
    """Write the targets that discovery with `role: endpoints` would find now, from the API server's
    objects; labels that no test uses are left out.
    """
    meta = "__meta_kubernetes"
    pods = {each["metadata"]["name"]: each for each in cluster.admin.get("pods", "-n", NAMESPACE)}
    targets = []
    for service in cluster.admin.get("services", "-n", NAMESPACE):
        name, labels = service["metadata"]["name"], service["metadata"].get("labels", {})
        common = {f"{meta}_namespace": NAMESPACE, f"{meta}_service_name": name}
        common |= {
            f"{meta}_service_label_{re.sub('[^a-zA-Z0-9_]', '_', key)}": value
            for key, value in labels.items()
        }
        for found in cluster.admin.get(
            "endpointslices", "-n", NAMESPACE, "-l", f"kubernetes.io/service-name={name}"
        ):
            for endpoint, port in product(found["endpoints"] or (), found["ports"] or ()):
                own = {f"{meta}_endpoint_port_name": port.get("name", "")}
                if endpoint.get("targetRef", {}).get("kind") == "Pod":
                    pod = pods[endpoint["targetRef"]["name"]]
                    own[f"{meta}_pod_name"] = pod["metadata"]["name"]
                    for container in pod["spec"]["containers"]:
                        if any(
                            each["containerPort"] == port["port"]
                            for each in container.get("ports", ())
                        ):
                            own[f"{meta}_pod_container_name"] = container["name"]
                targets.append(
                    {
                        "targets": [f"{endpoint['addresses'][0]}:{port['port']}"],
                        "labels": common | own,
                    }
                )
    path = cluster.folder / "endpoints.json"
    path.write_text(json.dumps(targets), encoding="utf-8")
    return path


def cards_of(cluster: ControlPlane, pod: Object) -> list[str]:
    """The cards that the kubelet has given to a pod, according to the kubelet's own notes."""
    noted = json.loads(
        (kubelet_folder(cluster) / "device-plugins" / "kubelet_internal_checkpoint").read_bytes()
    )
    return [
        each
        for entry in noted["Data"]["PodDeviceEntries"] or ()
        if (entry["PodUID"], entry["ResourceName"]) == (pod["metadata"]["uid"], GPU)
        for devices in entry["DeviceIDs"].values()
        for each in devices
    ]
