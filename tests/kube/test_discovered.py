"""Does a real Prometheus find Fairlead's pods, by the operator's objects and by the plain file, and
do rules and boards have the same data?

The API server, the operator and both Prometheuses are real. Each container of Fairlead's is a
process at its pod's address, with the port, the account and the flags of its manifest.
"""

from __future__ import annotations

import re
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
import yaml
from tests.kube.asked_labels import Question, labels_of, of_rules, questions
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_operator_of_prometheus
from tests.kube.deployed import DEPLOY, FILES
from tests.kube.monitoring import (
    NAMESPACE,
    READ_BY,
    RELEASE,
    SCRAPE,
    Operator,
    described_prometheus,
    plain_prometheus,
    rights_of_the_example,
    running_operator,
    until_equal,
)
from tests.kube.objects import cpu_node, gpu_node
from tests.kube.played_pods import (
    NEEDS_ROOT,
    NODE_SPACE,
    SYSTEM,
    Serving,
    played,
    pod_ranges,
    running_pods,
    serving,
)
from tests.kube.prometheus import Prometheus
from tests.kube.servers import Page
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(bool(NEEDS_ROOT), reason=NEEDS_ROOT)
Object = dict[str, Any]
MONITORS, OPERATOR_RULES = (
    DEPLOY / "prometheus" / "servicemonitor.yaml",
    DEPLOY / "prometheus" / "prometheusrule.yaml",
)
MONITORED = {
    (each["kind"], each["metadata"]["name"])
    for each in yaml.safe_load_all(MONITORS.read_text(encoding="utf-8"))
}
NODES = ("gpu-a100-1", "gpu-a100-2")
"""The names of two nodes of the simulated cluster, whose cards the exporters play."""
WORKLOADS = "deployments,daemonsets"
WAYS = ("operator", "plain")


class Monitored(NamedTuple):
    cluster: ControlPlane
    operator: Operator
    serving: list[Serving]
    components: Mapping[Serving, Component]
    before: set[str]
    """The scrape jobs and rules that the operator made of Fairlead's objects before they had the
    label that its Prometheus selects.
    """
    prometheus: dict[str, Prometheus]


@pytest.fixture(scope="module")
def monitored() -> Iterator[Monitored]:
    with ExitStack() as leaving:
        cluster = leaving.enter_context(running_control_plane())
        cluster.admin.create(nodes(leaving.enter_context(pod_ranges(3))))
        install_operator_of_prometheus(cluster.admin)
        deploy(cluster)
        running = leaving.enter_context(played(cluster))
        operator = leaving.enter_context(running_operator(cluster))
        before = {*operator.jobs(), *operator.rules()}
        for file in (MONITORS, OPERATOR_RULES):
            cluster.admin.run(
                "label", "-f", str(file), *(f"{key}={value}" for key, value in RELEASE.items())
            )
        wait_until(
            "the operator has taken all",
            lambda: len(operator.jobs()) == len(MONITORED) and operator.rules(),
        )
        prometheus = {
            "operator": leaving.enter_context(described_prometheus(cluster, operator)),
            "plain": leaving.enter_context(plain_prometheus(cluster)),
        }
        yield Monitored(cluster, operator, [*running], running, before, prometheus)


def nodes(ranges: list[str]) -> Iterator[Object]:
    """Two nodes with cards, one of the control plane."""
    found = [*(gpu_node(name, 8) for name in NODES), cpu_node("master")]
    for node, addresses in zip(found, ranges, strict=True):
        node["metadata"]["labels"] |= {
            "kubernetes.io/os": "linux",
            "nvidia.com/gpu.present": "true",
        }
        node["spec"] = {"podCIDR": addresses, "podCIDRs": [addresses]}
        if node["metadata"]["name"] == "master":
            del node["metadata"]["labels"]["nvidia.com/gpu.present"]
            node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = ""
            node["spec"]["taints"] = [
                {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
            ]
        yield node


def deploy(cluster: ControlPlane) -> None:
    """Apply every file but those whose webhook no process plays, and Fairlead's objects for the
    operator, as shipped.
    """
    cluster.admin.run("apply", "-f", str(DEPLOY / "namespace.yaml"))
    others = [
        DEPLOY / file
        for file in FILES
        if file not in ("namespace.yaml", "gpushare-webhook.yaml", "quota-webhook.yaml")
    ]
    cluster.admin.run(
        "apply", *(f"--filename={path}" for path in (*others, MONITORS, OPERATOR_RULES))
    )
    wait_until(
        "all pods of the files run",
        lambda: all(
            is_complete(each)
            for space in (SYSTEM, NODE_SPACE)
            for each in cluster.admin.get(WORKLOADS, "-n", space)
        ),
    )


def is_complete(workload: Object) -> bool:
    """Whether the workload has the pods that it wants, and wants at least one."""
    status = workload["status"]
    if workload["kind"] == "Deployment":
        return bool(status.get("readyReplicas") == workload["spec"]["replicas"])
    return bool(status.get("numberReady") == status.get("desiredNumberScheduled") != 0)


# --- what is found --------------------------------------------------------------------------------


def test_the_operator_selects_nothing_of_fairlead_without_its_prometheus_label(
    monitored: Monitored,
) -> None:
    assert monitored.before == set()


def test_the_operator_takes_each_of_our_objects_and_complains_of_nothing(
    monitored: Monitored,
) -> None:
    until_equal("objects that are refused", monitored.operator.refused, dict)
    assert monitored.operator.jobs() == {
        f"{kind[0].lower()}{kind[1:]}/{SYSTEM}/{name}/0" for kind, name in MONITORED
    }
    assert monitored.operator.complaints() == []


def test_the_operator_refuses_what_is_wrong(monitored: Monitored) -> None:
    """This shows that the test above can fail: the rule is no PromQL."""
    (rule,) = yaml.safe_load_all(OPERATOR_RULES.read_text(encoding="utf-8"))
    wrong = {"name": "wrong", "rules": [{"alert": "Wrong", "expr": "fairlead_gpu_up{"}]}
    metadata = {"name": "wrong", "namespace": SYSTEM, "labels": RELEASE}
    monitored.cluster.admin.create([{**rule, "metadata": metadata, "spec": {"groups": [wrong]}}])
    wait_until("it is refused", lambda: monitored.operator.refused().get("wrong"))
    monitored.cluster.admin.delete("prometheusrules", "wrong", "-n", SYSTEM)


def test_every_server_that_the_files_deploy_is_played(monitored: Monitored) -> None:
    assert Counter(name_of(each.pod) for each in monitored.serving) == dict.fromkeys(
        (name for _, name in MONITORED), 2
    )


@pytest.mark.parametrize("way", WAYS)
def test_every_server_of_fairlead_is_a_target_once_and_up(monitored: Monitored, way: str) -> None:
    expected = {
        address: [("up", "")] for address in sorted(each.address for each in monitored.serving)
    }
    until_equal("targets", lambda: targets(monitored.prometheus[way]), lambda: expected)


def test_a_prometheus_as_the_operator_shows_it_may_do_what_fairleads_may_here() -> None:
    """That Prometheus may read all namespaces; the one here has only the rights that Fairlead's
    files name, in Fairlead's namespaces.
    """
    allowed = {
        (verb, what)
        for rule in rights_of_the_example()
        for what in rule.get("resources", ())
        for verb in rule["verbs"]
    }
    assert {
        (verb, what) for what in READ_BY["operator"] for verb in ("get", "list", "watch")
    } <= allowed
    for file, way in ((MONITORS, "operator"), (SCRAPE, "plain")):
        message = " ".join(file.read_text(encoding="utf-8").replace("\n#", "").split())
        (named,) = re.findall(
            (
                r"must be allowed to get, list and watch ([\w, "
                r"]+) in fairlead-system and fairlead-nodes"
            ),
            message,
        )
        assert set(re.findall(r"\w+", named)) - {"and"} == set(READ_BY[way])


@pytest.mark.parametrize("way", WAYS)
def test_a_target_carries_the_names_of_its_pod(monitored: Monitored, way: str) -> None:
    reported = {
        target["labels"]["instance"]: target["labels"]
        for target in monitored.prometheus[way].targets()
    }
    for each in monitored.serving:
        pod = each.pod["metadata"]
        names = {
            "namespace": pod["namespace"],
            "pod": pod["name"],
            "container": each.container["name"],
        }
        assert names.items() <= reported[each.address].items()


@pytest.mark.parametrize("way", WAYS)
def test_a_job_is_called_as_its_pods_both_ways(monitored: Monitored, way: str) -> None:
    """By default a PodMonitor puts the namespace before the name, and
    `up{job="fairlead-node-agent"}` would find nothing.
    """
    found = {
        name_of(each.pod): job_of(monitored.prometheus[way], each) for each in monitored.serving
    }
    assert found == {name: name for _, name in MONITORED}


# --- what is made of it ---------------------------------------------------------------------------


def test_both_load_every_rule_of_fairlead_and_evaluate_it(monitored: Monitored) -> None:
    names = Counter(question.name for question in of_rules())
    for way in WAYS:
        wait_until(
            f"{way}: all are evaluated",
            lambda way=way: all(rule["health"] == "ok" for rule in rules(monitored, way)),
            60,
        )
        assert Counter(rule["name"] for rule in rules(monitored, way)) == names


def test_the_labels_that_our_files_ask_for_are_there_both_ways(monitored: Monitored) -> None:
    """This includes labels of targets, which no page of Fairlead's has: a board chooses by
    `instance`, the adapter by `pod` or `exported_pod`.
    """
    asked = asked_for(monitored) & {
        label for way in WAYS for label in put(monitored.prometheus[way])
    }
    assert {
        "instance",
        "container",
        "pod",
        "namespace",
        "exported_pod",
        "exported_namespace",
    } <= asked
    for way in WAYS:
        wait_until(
            f"{way}: {sorted(asked)} are there",
            lambda way=way: asked <= there(monitored, way),
            60,
        )


def test_both_give_each_question_of_boards_rules_and_adapter_the_same_series(
    monitored: Monitored,
) -> None:
    operator, plain = (monitored.prometheus[way] for way in WAYS)
    wait_until(
        "a rate can be had",
        lambda: all(
            each.query("rate(fairlead_gpu_pcie_bytes_total[1m])") for each in (operator, plain)
        ),
    )
    answered = set()
    for each in questions():
        until_equal(
            each.name,
            lambda each=each: series(operator, each),
            lambda each=each: series(plain, each),
        )
        answered |= {each.name} if series(plain, each) else set()
    assert len(answered) > 50
    assert {"adapter rule 2", "adapter rule 3"} <= answered


def test_neither_misses_an_exporter_that_is_there(monitored: Monitored) -> None:
    for way in WAYS:
        until_equal(
            f"{way}: exporters that are missed",
            lambda way=way: missed(monitored.prometheus[way]),
            set,
        )


def test_the_operator_takes_the_inhibitions_as_they_are(monitored: Monitored) -> None:
    admin = monitored.cluster.admin
    reported = yaml.safe_load(
        (DEPLOY / "prometheus" / "alertmanager-inhibition.yaml").read_text(encoding="utf-8")
    )
    config = {
        "route": {"receiver": "none", "group_by": ["node_name", "uuid"]},
        "receivers": [{"name": "none"}],
        **reported,
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "stringData": {"alertmanager.yaml": yaml.safe_dump(config)},
    }
    named = {"namespace": NAMESPACE, "name": "alertmanager-stack"}
    spec = {
        "replicas": 1,
        "alertmanagerConfigSelector": {},
        "alertmanagerConfigNamespaceSelector": {},
    }
    alertmanager = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Alertmanager",
        "metadata": {**named, "name": "stack"},
        "spec": spec,
    }
    admin.create([{**secret, "metadata": named}, alertmanager])
    wait_until("it is taken", lambda: monitored.operator.alertmanager("stack"))
    assert monitored.operator.alertmanager("stack")["inhibit_rules"] == reported["inhibit_rules"]


# --- what ends: the last of all -------------------------------------------------------------------


def test_pods_that_ended_or_are_gone_are_no_targets_and_are_missed(monitored: Monitored) -> None:
    """Of each Deployment one pod has failed, like an evicted pod, and stays. An exporter of one
    node is deleted, and is created again.
    """
    admin, gone = monitored.cluster.admin, NODES[1]
    for name in ("fairlead-scheduler", "fairlead-quota-controller", "fairlead-cluster-exporter"):
        first = next(each for each in monitored.serving if name_of(each.pod) == name)
        admin.patch_status(
            "pod", first.pod["metadata"]["name"], SYSTEM, {"phase": "Failed", "reason": "Evicted"}
        )
        monitored.components[first].stop()
    (exporter,) = (
        each
        for each in monitored.serving
        if is_exporter(each) and each.pod["spec"]["nodeName"] == gone
    )
    admin.delete("pod", exporter.pod["metadata"]["name"], "-n", NODE_SPACE)
    monitored.components[exporter].stop()
    wait_until(
        "others are in their place",
        lambda: len(addresses(monitored.cluster)) == len(monitored.serving),
    )
    for way in WAYS:
        until_equal(
            f"{way}: targets",
            lambda way=way: set(targets(monitored.prometheus[way])),
            lambda: addresses(monitored.cluster),
        )
    for way in WAYS:
        until_equal(
            f"{way}: missed",
            lambda way=way: missed(monitored.prometheus[way]),
            lambda: {("ExporterMissing", gone)},
        )
    admin.run("scale", "deployment/fairlead-cluster-exporter", "-n", SYSTEM, "--replicas=0")
    for way in WAYS:
        until_equal(
            f"{way}: missed",
            lambda way=way: missed(monitored.prometheus[way]),
            lambda: {("ClusterExporterMissing", "")},
        )


# --- what they ask --------------------------------------------------------------------------------


def name_of(pod: Object) -> str:
    return str(pod["metadata"]["labels"]["app.kubernetes.io/name"])


def is_exporter(each: Serving) -> bool:
    return name_of(each.pod) == "fairlead-gpu-exporter"


def page(each: Serving) -> Page:
    with urllib.request.urlopen(f"http://{each.address}/metrics", timeout=10) as answer:
        return Page(answer.read().decode())


def targets(prometheus: Prometheus) -> dict[str, list[tuple[str, str]]]:
    """Health and error of each target by its address."""
    found: dict[str, list[tuple[str, str]]] = {}
    for target in sorted(prometheus.targets(), key=lambda each: str(each["scrapeUrl"])):
        address = str(target["scrapeUrl"]).removeprefix("http://").removesuffix("/metrics")
        found.setdefault(address, []).append((target["health"], target["lastError"]))
    return found


def addresses(cluster: ControlPlane) -> set[str]:
    """Addresses of Fairlead's servers that run now."""
    return {each.address for pod in running_pods(cluster) for each in serving(pod)}


def job_of(prometheus: Prometheus, each: Serving) -> str:
    (job,) = (
        target["labels"]["job"]
        for target in prometheus.targets()
        if target["labels"]["instance"] == each.address
    )
    return str(job)


def rules(monitored: Monitored, way: str) -> list[Object]:
    return monitored.prometheus[way].rules()


def missed(prometheus: Prometheus) -> set[tuple[str, str]]:
    """Alerts of exporters that are missing, with their node, pending or firing."""
    reported = [dict(labels) for labels in prometheus.alerts()]
    found = {
        (each["alertname"].removeprefix("Fairlead"), each.get("node_name", "")) for each in reported
    }
    return {each for each in found if each[0].endswith("ExporterMissing")}


def asked_for(monitored: Monitored) -> set[str]:
    plain = monitored.prometheus["plain"]
    return {label for question in questions() for label in labels_of(plain, question)}


def put(prometheus: Prometheus) -> set[str]:
    """Labels that Prometheus adds to series, and its names for a
    page's own labels of such names.
    """
    of_targets = {label for target in prometheus.targets() for label in target["labels"]}
    return of_targets | {f"exported_{label}" for label in of_targets}


def there(monitored: Monitored, way: str) -> set[str]:
    return monitored.prometheus[way].label_names()


def series(prometheus: Prometheus, question: Question) -> Counter[tuple[tuple[str, str], ...]]:
    """Numbers of series by the labels that the question uses."""
    asked = labels_of(prometheus, question)
    found = prometheus.query(question.expression)
    return Counter(
        tuple(sorted((label, value) for label, value in sample.labels.items() if label in asked))
        for sample in found
    )
