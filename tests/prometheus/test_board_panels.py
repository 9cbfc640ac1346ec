"""What panels show of series that are easily missed, evaluated by Prometheus's promtool."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.prometheus.alert_cases import CLUSTER, MINUTE, container, from_then, gpu, held
from tests.prometheus.promtool import Asked, Question, selector, wrong_answers

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana"


def expression(board: str, panel: str, cluster: str = "") -> str:
    """The expression of the panel's only query, with everything chosen; `cluster` "" = a Prometheus
    of one cluster.
    """
    (found,) = (
        each
        for each in json.loads((FOLDER / f"{board}.json").read_text(encoding="utf-8"))["panels"]
        if each["title"] == panel
    )
    (target,) = found["targets"]
    filled = {"$__rate_interval": "5m", "$__range": "3h", "$cluster": cluster}
    return re.sub(r"\$\w+", lambda name: filled.get(name[0], ".*"), target["expr"])


def test_the_first_xid_of_its_kind_is_drawn(tmp_path: Path) -> None:
    """Codes that programs cause have no series before the first XID; harmful codes are 0 from the
    start.
    """
    series = {
        gpu("xid_errors_total", xid="31"): from_then(1, 10 * MINUTE, 20 * MINUTE),
        gpu("xid_errors_total", xid="79"): held(0, 20 * MINUTE),
    }
    none = {'{xid="79"}': 0.0}
    drawn = expression("fairlead-gpu-node", "XID errors")
    asked = [
        Asked(at * MINUTE, drawn, reported)
        for at, reported in (
            (9, none),
            (11, {**none, '{xid="31"}': 1}),
            (19, {**none, '{xid="31"}': 0}),
        )
    ]
    assert wrong_answers([Question("an XID 31", series, asked)], tmp_path) == ""


def test_an_exporter_that_is_replaced_repeats_no_xid(tmp_path: Path) -> None:
    """Its next pod, which is another target, repeats what the kernel's log still has."""
    series = {
        gpu("xid_errors_total", xid="31"): f"{held(2, 10 * MINUTE)} stale",
        gpu("xid_errors_total", xid="31", instance="10.0.0.2:9400"): from_then(
            2, 11 * MINUTE, 20 * MINUTE
        ),
    }
    drawn = expression("fairlead-gpu-node", "XID errors")
    asked = [Asked(at * MINUTE, drawn, {'{xid="31"}': 0}) for at in (9, 12, 19)]
    assert wrong_answers([Question("a new pod", series, asked)], tmp_path) == ""


def test_errors_and_restarts_are_drawn_when_they_happen(tmp_path: Path) -> None:
    """They are not drawn for the whole time in which the exporter keeps counting."""
    pod = {**CLUSTER, "namespace_name": "vision", "pod_name": "p", "node_name": "gpu-1"}
    series = {
        gpu("xid_errors_total", xid="79"): f"{held(3, 10 * MINUTE)} {held(5, 10 * MINUTE)}",
        selector("fairlead_gpu_pod_restarts_total", pod): (
            f"{held(7, 10 * MINUTE)} {held(8, 10 * MINUTE)}"
        ),
        selector("fairlead_gpu_pod_info", {**pod, "workload": "web", "phase": "Running"}): held(
            1, 20 * MINUTE
        ),
    }
    xids, restarts = (
        expression("fairlead-gpu-node", "XID errors"),
        expression("fairlead-gpu-app", "Restarts"),
    )
    key = '{namespace_name="vision",pod_name="p"}'
    asked = [
        Asked(at * MINUTE, xids, {'{xid="79"}': new}) for at, new in ((9, 0), (12, 2), (19, 0))
    ]
    asked += [Asked(at * MINUTE, restarts, {key: new}) for at, new in ((9, 0), (12, 1), (19, 0))]
    assert wrong_answers([Question("errors", series, asked)], tmp_path) == ""


def test_a_prometheus_of_two_clusters_shows_the_chosen_one(tmp_path: Path) -> None:
    """A Prometheus of a single cluster, whose series have no such label, shows what it has."""
    drawn = "fairlead-cluster", "Total GPU Nodes"
    of = {
        name: selector("fairlead_cluster_gpu_nodes", {**CLUSTER, "cluster": name})
        for name in ("small", "large")
    }
    two = {of["small"]: held(2, 5 * MINUTE), of["large"]: held(20, 5 * MINUTE)}
    one = {selector("fairlead_cluster_gpu_nodes", CLUSTER): held(4, 5 * MINUTE)}
    questions = [
        Question(
            "two clusters",
            two,
            [
                Asked(MINUTE, expression(*drawn, cluster=name), {"{}": nodes})
                for name, nodes in (("small", 2), ("large", 20))
            ],
        ),
        Question("one cluster", one, [Asked(MINUTE, expression(*drawn), {"{}": 4})]),
    ]
    assert wrong_answers(questions, tmp_path) == ""


def test_look_ups_of_unknown_allocators_are_drawn_when_they_happen(tmp_path: Path) -> None:
    """Also those of a container whose program looked them up before the first scrape."""
    pod = {**CLUSTER, "namespace_name": "vision", "pod_name": "p", "node_name": "gpu-1"}
    info = selector("fairlead_gpu_pod_info", {**pod, "workload": "web", "phase": "Running"})
    counter = container("unknown_allocators_total")
    drawn = expression("fairlead-gpu-app", "Allocators that the memory guard does not know")
    key = '{namespace_name="vision",pod_name="p",container_name="c"}'
    begins = {counter: from_then(2, 10 * MINUTE, 20 * MINUTE), info: held(1, 20 * MINUTE)}
    later = {
        counter: f"{held(0, 10 * MINUTE)} {held(2, 10 * MINUTE)}",
        info: held(1, 20 * MINUTE),
    }
    answers = {11: {key: 2.0}, 19: {key: 0.0}}
    asked = [Asked(at * MINUTE, drawn, answer) for at, answer in answers.items()]
    questions = [Question("at its start", begins, asked), Question("later", later, asked)]
    assert wrong_answers(questions, tmp_path) == ""
