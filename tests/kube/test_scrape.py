"""Do the two files for Prometheus scrape what the manifests deploy, and nothing else? The
relabelling is Prometheus's own (promtool).

Debian's promtool is built without discovery in Kubernetes, so the targets come from files, with the
labels that discovery of pods gives each declared port.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml
from tests.kube.deployed import DEPLOY, FILES, Object, of_file
from tests.programs import run_program

SCRAPE = DEPLOY / "prometheus" / "scrape.yaml"
MONITORS = DEPLOY / "prometheus" / "servicemonitor.yaml"
EXPECTED = {
    ("fairlead-gpu-exporter", "fairlead-gpu-exporter", 9400),
    ("fairlead-cluster-exporter", "exporter", 9401),
    ("fairlead-quota-controller", "controller", 9402),
    ("fairlead-node-agent", "agent", 9403),
    ("fairlead-people-controller", "controller", 9404),
    ("fairlead-usage-recorder", "recorder", 9405),
    ("fairlead-scheduler", "extender", 12345),
}
"""The application, the container and its port of each expected target."""
ON_NODES = ("fairlead-gpu-exporter", "fairlead-node-agent")


def ports_of_pods() -> list[tuple[str, Object, str, str, int]]:
    """Namespace and labels of each pod that a manifest creates, with container, name and number of
    each port that it declares.
    """
    templates = [
        (obj["metadata"]["namespace"], obj["spec"]["template"])
        for file in FILES
        for obj in of_file(file)
        if obj["kind"] in ("Deployment", "DaemonSet")
    ]
    return [
        (
            namespace,
            template["metadata"]["labels"],
            container["name"],
            port.get("name", ""),
            port["containerPort"],
        )
        for namespace, template in templates
        for container in template["spec"]["containers"]
        for port in container.get("ports", ())
    ]


def discovered(phase: str = "Running") -> list[Object]:
    """The result of `role: pod`, in the words of Prometheus's documents."""
    return [
        {
            "targets": [f"10.0.0.{number}:{port}"],
            "labels": {
                "__meta_kubernetes_namespace": namespace,
                "__meta_kubernetes_pod_name": f"{labels['app.kubernetes.io/name']}-x1y2z",
                "__meta_kubernetes_pod_phase": phase,
                "__meta_kubernetes_pod_container_name": container,
                "__meta_kubernetes_pod_container_port_name": name,
                **{
                    f"__meta_kubernetes_pod_label_{re.sub(r'[^a-zA-Z0-9_]', '_', key)}": value
                    for key, value in labels.items()
                },
            },
        }
        for number, (namespace, labels, container, name, port) in enumerate(ports_of_pods(), 1)
    ]


def kept(folder: Path, found: list[Object]) -> list[dict[str, str]]:
    """The labels of the targets that relabelling keeps, of all jobs."""
    config: dict[str, Any] = yaml.safe_load(SCRAPE.read_text(encoding="utf-8"))
    (folder / "targets.json").write_text(json.dumps(found))
    for job in config["scrape_configs"]:
        assert job.pop("kubernetes_sd_configs") == [
            {"role": "pod", "namespaces": {"names": ["fairlead-system", "fairlead-nodes"]}}
        ]
        job["file_sd_configs"] = [{"files": [str(folder / "targets.json")]}]
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    checked = promtool("check", "config", str(file))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    labels: list[dict[str, str]] = []
    for job in config["scrape_configs"]:
        result = promtool(
            "check", "service-discovery", "--timeout=500ms", str(file), job["job_name"]
        )
        assert result.returncode == 0, result.stdout + result.stderr
        labels += [each["labels"] for each in json.loads(result.stdout) if each["labels"]]
    return labels


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    return run_program(["promtool", *words])


def strangers() -> list[Object]:
    """Targets that must not be scraped: Fairlead's pods that have ended; ports of other names; pods
    of other names.
    """
    broken = (
        "__meta_kubernetes_pod_container_port_name",
        "__meta_kubernetes_pod_label_app_kubernetes_io_name",
    )
    return [
        *discovered("Failed"),
        *discovered("Succeeded"),
        *(
            {**each, "labels": {**each["labels"], label: "web"}}
            for label in broken
            for each in discovered()
        ),
    ]


def test_each_page_of_fairlead_is_scraped_once_under_its_own_name_and_nothing_else_is(
    tmp_path: Path,
) -> None:
    labels = kept(tmp_path, [*discovered(), *strangers()])
    assert len(labels) == len(EXPECTED)
    assert {
        (each["job"], each["container"], int(each["__address__"].rpartition(":")[2]))
        for each in labels
    } == EXPECTED
    assert {each["job"]: each["namespace"] for each in labels} == {
        name: "fairlead-nodes" if name in ON_NODES else "fairlead-system" for name, _, _ in EXPECTED
    }
    assert all(each["pod"].removesuffix("-x1y2z") == each["job"] for each in labels)
    assert {
        each["job"]: (each["__scrape_interval__"], each["__scrape_timeout__"]) for each in labels
    } == {
        name: ("5s", "4s") if name == "fairlead-cluster-exporter" else ("15s", "10s")
        for name, _, _ in EXPECTED
    }


def test_the_monitors_of_the_operator_select_the_same() -> None:
    services = [obj for file in FILES for obj in of_file(file) if obj["kind"] == "Service"]
    selected = []
    for monitor in yaml.safe_load_all(MONITORS.read_text(encoding="utf-8")):
        wanted, spec = monitor["spec"]["selector"]["matchLabels"], monitor["spec"]
        (endpoint,) = spec.get("podMetricsEndpoints") or spec["endpoints"]
        port = endpoint["port"]
        here = [monitor["metadata"]["namespace"]]
        spaces = spec.get("namespaceSelector", {}).get("matchNames", here)
        assert endpoint["honorLabels"] is False
        assert int(endpoint["scrapeTimeout"][:-1]) < int(endpoint["interval"][:-1])
        if monitor["kind"] == "ServiceMonitor":
            (service,) = (
                each
                for each in services
                if wanted.items() <= each["metadata"].get("labels", {}).items()
            )
            (port,) = (
                each["targetPort"] for each in service["spec"]["ports"] if each["name"] == port
            )
            wanted = service["spec"]["selector"]
        found = [
            each
            for each in ports_of_pods()
            if wanted.items() <= each[1].items() and each[3] == port and each[0] in spaces
        ]
        selected += [
            (labels["app.kubernetes.io/name"], container, number)
            for _, labels, container, _, number in found
        ]
    assert sorted(selected) == sorted(EXPECTED)
