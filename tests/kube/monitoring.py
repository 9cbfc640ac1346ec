"""Starts Prometheus in a cluster in two ways: the Prometheus operator with the Prometheus that it
describes, and a Prometheus without the operator.

Both discover targets through the API server, each with the token of its own account. The
configuration and the rules that the operator would mount into a Prometheus pod are read from its
Secret and its ConfigMaps.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import DEPLOY
from tests.kube.played_pods import NODE_SPACE, SYSTEM
from tests.kube.programs import module_folder, program
from tests.kube.prometheus import Prometheus, own_folder, started
from tests.waiting import wait_until

Object = dict[str, Any]
NAMESPACE, NAME, RELEASE = "monitoring", "stack", {"release": "stack"}
SCRAPE, RULES = DEPLOY / "prometheus" / "scrape.yaml", DEPLOY / "prometheus" / "fairlead.rules.yaml"
EVALUATED = "5s"
READ_BY = {"operator": ("services", "endpoints", "pods"), "plain": ("pods",)}
"""Resources in Fairlead's namespaces that Prometheus must be allowed to get, list and watch, as
servicemonitor.yaml and scrape.yaml state.
"""
_MOUNTED = f"/etc/prometheus/rules/prometheus-{NAME}-rulefiles-0"


class Operator:
    """The running operator, and what it generates for the one Prometheus that it receives."""

    def __init__(self, cluster: ControlPlane, component: Component) -> None:
        self._cluster = cluster
        self.component = component

    def configuration(self) -> Object:
        """The configuration of its Prometheus; empty before the operator has written it."""
        for secret in self._cluster.admin.get("secrets", "-n", NAMESPACE):
            if secret["metadata"]["name"] == f"prometheus-{NAME}":
                text = gzip.decompress(base64.b64decode(secret["data"]["prometheus.yaml.gz"]))
                found: Object = yaml.safe_load(text)
                return found
        return {}

    def jobs(self) -> set[str]:
        return {job["job_name"] for job in self.configuration().get("scrape_configs") or ()}

    def alertmanager(self, name: str) -> Object:
        """The configuration of its Alertmanager, as the operator wrote it; empty before that."""
        for secret in self._cluster.admin.get("secrets", "-n", NAMESPACE):
            if secret["metadata"]["name"] == f"alertmanager-{name}-generated":
                found: Object = yaml.safe_load(
                    gzip.decompress(base64.b64decode(secret["data"]["alertmanager.yaml.gz"]))
                )
                return found
        return {}

    def rules(self) -> dict[str, str]:
        """Its files of rules by name."""
        found = self._cluster.admin.get(
            "configmaps", "-n", NAMESPACE, "-l", f"prometheus-name={NAME}"
        )
        return {name: text for each in found for name, text in (each.get("data") or {}).items()}

    def refused(
        self, kinds: str = "podmonitors,servicemonitors,prometheusrules"
    ) -> dict[str, list[str]]:
        """Objects in Fairlead's namespace that the operator does not accept: the message in their
        status.
        """
        found: dict[str, list[str]] = {}
        for each in self._cluster.admin.get(kinds, "-n", SYSTEM):
            printed = [
                reported
                for binding in each.get("status", {}).get("bindings", ())
                for reported in binding["conditions"]
            ]
            words = [
                f"{reported.get('reason')}: {reported.get('message')}"
                for reported in printed
                if reported["status"] != "True"
            ]
            if words or not printed:
                found[each["metadata"]["name"]] = words
        return found

    def complaints(self) -> list[str]:
        """Lines of its log above `info` that name something of Fairlead's, without conflicts that
        the operator retries.
        """
        lines = self.component.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [
            line
            for line in lines
            if "fairlead" in line
            and "Operation cannot be fulfilled" not in line
            and re.search("level=(warn|error)", line, re.IGNORECASE)
        ]


def described(cluster: ControlPlane, token: Path) -> Object:
    """The Prometheus that kube-prometheus-stack describes with its default values, for the release
    `stack`: its selectors.

    It contains the API server's address, because it runs in no pod that would get it from the
    environment.
    """
    every, own = {}, {"matchLabels": RELEASE}
    selectors = {
        f"{kind}NamespaceSelector": every
        for kind in ("serviceMonitor", "podMonitor", "probe", "scrapeConfig", "rule")
    }
    selectors |= {
        f"{kind}Selector": own
        for kind in ("serviceMonitor", "podMonitor", "probe", "scrapeConfig", "rule")
    }
    server = {
        "host": cluster.server,
        "authorization": {"type": "Bearer", "credentialsFile": str(token)},
        "tlsConfig": {"caFile": str(cluster.authority)},
    }
    spec = {
        "replicas": 1,
        "serviceAccountName": "prometheus",
        "evaluationInterval": EVALUATED,
        "apiserverConfig": server,
        **selectors,
    }
    metadata = {"name": NAME, "namespace": NAMESPACE}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Prometheus",
        "metadata": metadata,
        "spec": spec,
    }


@contextmanager
def running_operator(cluster: ControlPlane) -> Iterator[Operator]:
    """The operator with the rights of its own manifest. Its kinds must be installed.

    Its first configuration is made from the objects that exist already.
    """
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.admin.apply([namespace])
    rights = _rules_of("prometheus-operator/prometheus-operator-cluster-role.yaml")
    kubeconfig = cluster.write_service_account_kubeconfig("prometheus-operator", rights, NAMESPACE)
    reading = _reader_of_our_namespaces(cluster, "prometheus", READ_BY["operator"])
    port = free_port()
    argv = [
        program("prometheus-operator"),
        f"--web.listen-address=127.0.0.1:{port}",
        "--disable-unmanaged-prometheus-configuration=true",
        "--feature-gates=StatusForConfigurationResources=true",
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "KUBECONFIG": str(kubeconfig),
    }
    component = Component(
        "prometheus-operator", argv, cluster.logs / "prometheus-operator.log", environment
    )
    operator = Operator(cluster, component)
    try:
        component.start()
        cluster.admin.apply([described(cluster, _token_of(cluster, reading))])
        component.wait_until(lambda: bool(operator.configuration()), 120)
        yield operator
    finally:
        component.stop()


@contextmanager
def described_prometheus(cluster: ControlPlane, operator: Operator) -> Iterator[Prometheus]:
    """The Prometheus that the operator describes now, with its configuration and its rules."""
    with own_folder() as folder:
        for name, text in operator.rules().items():
            (folder / name).write_text(text, encoding="utf-8")
        configuration = json.dumps(operator.configuration())
        for word, meaning in {
            _MOUNTED: str(folder),
            "$(SHARD)": "0",
            "$(POD_NAME)": f"prometheus-{NAME}-0",
        }.items():
            # replace the last two as its reloader does, from the pod's environment
            configuration = configuration.replace(word, meaning)
        with _running(cluster, "prometheus-of-operator", json.loads(configuration)) as prometheus:
            yield prometheus


@contextmanager
def plain_prometheus(cluster: ControlPlane) -> Iterator[Prometheus]:
    """A Prometheus without the operator, with Fairlead's two files and the rights that scrape.yaml
    names.
    """
    kubeconfig = _reader_of_our_namespaces(cluster, "plain-prometheus", READ_BY["plain"])
    with own_folder() as folder:
        shipped = SCRAPE.read_text(encoding="utf-8")
        message = f"- role: pod\n        kubeconfig_file: {kubeconfig}\n"
        assert shipped.count("- role: pod\n") == 1
        (folder / "scrape.yaml").write_text(
            shipped.replace("- role: pod\n", message), encoding="utf-8"
        )
        configuration = {
            "global": {"evaluation_interval": EVALUATED},
            "scrape_config_files": [str(folder / "scrape.yaml")],
            "rule_files": [str(RULES)],
        }
        with _running(cluster, "prometheus-plain", configuration) as prometheus:
            yield prometheus


def _reader_of_our_namespaces(cluster: ControlPlane, name: str, resources: Sequence[str]) -> Path:
    """A kubeconfig of an account that may read these resources in Fairlead's namespaces, and
    nothing elsewhere.
    """
    rule = {"apiGroups": [""], "resources": [*resources], "verbs": ["get", "list", "watch"]}
    kubeconfig = cluster.write_service_account_kubeconfig(name, [], NAMESPACE)
    rbac = "rbac.authorization.k8s.io"
    for space in (SYSTEM, NODE_SPACE):
        metadata = {"name": name, "namespace": space}
        role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
        binding = {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        }
        cluster.admin.apply([role, binding])
    return kubeconfig


@contextmanager
def _running(cluster: ControlPlane, name: str, configuration: Object) -> Iterator[Prometheus]:
    with own_folder() as folder:
        port, file = free_port(), folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(configuration), encoding="utf-8")
        argv = [
            program("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        component = Component(
            name,
            argv,
            cluster.logs / f"{name}.log",
            {"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        )
        prometheus = Prometheus(component, "127.0.0.1", port, file, 15)
        with started(prometheus):
            yield prometheus


def rights_of_the_example() -> list[Object]:
    """The rights of Prometheus's account in the operator's documents."""
    return _rules_of("prometheus/prometheus-cluster-role.yaml")


def _rules_of(file: str) -> list[Object]:
    """The rules of a ClusterRole in the operator's module."""
    path = module_folder("PROMETHEUS_OPERATOR") / "example" / "rbac" / file
    found: list[Object] = yaml.safe_load(path.read_text(encoding="utf-8"))["rules"]
    return found


def _token_of(cluster: ControlPlane, kubeconfig: Path) -> Path:
    (user,) = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["users"]
    path = cluster.folder / "prometheus.token"
    path.write_text(user["user"]["token"], encoding="utf-8")
    return path


def until_equal(what: str, left: Any, right: Any, seconds: float = 90.0) -> None:
    """Wait until two questions have one answer; fails with both answers."""
    found: list[Any] = [None, None]

    def agree() -> bool:
        found[:] = left(), right()
        return bool(found[0] == found[1])

    wait_until(lambda: f"{what}: {found[0]} is {found[1]}", agree, seconds, 0.5)
