"""What `fairlead dataset list` and `show` ask an API server, and what they print of data sets that
are stuck, or that may not be read completely. Against scripted servers
(docs/spec/datasets.md#reasons).
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from tests.cli.arena import environment, kubeconfig, run_main
from tests.cli.jobs.scripted_jobs import listed
from tests.edge.scripted import Reply, ScriptedServer, Stream, status

CORE = "/api/v1/namespaces/default"
FLUID = "/apis/data.fluid.io/v1alpha1/namespaces/default"
CONTROLLERS = "/apis/apps/v1/namespaces/fluid-system/deployments"
OLD = "2020-01-02T03:04:05Z"
FORBIDDEN = status(403, "Forbidden", "you may not")
KINDS = ("alluxio", "jindo", "juicefs", "thin", "goosefs", "efc", "vineyard")
LISTS = {
    "GET persistentvolumeclaims": 1,
    "GET datasets": 1,
    **{f"GET {kind}runtimes": 1 for kind in KINDS},
}


def data_set(phase: str, **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "faces", "namespace": "default", "creationTimestamp": OLD, **meta},
        "spec": {"mounts": [{"mountPoint": "pvc://raw", "name": "raw"}]},
        "status": {"phase": phase, "ufsTotal": "[Calculating]", "conditions": []},
    }


ENDING = data_set("Bound", deletionTimestamp=OLD, finalizers=["fluid-dataset-controller-finalizer"])


def script(*data_sets: Any, **replaced: Reply) -> dict[str, list[Reply | Stream]]:
    """`replaced`: other answers, by the last word of the path."""
    runtime = {"metadata": {"name": "faces", "namespace": "default"}, "spec": {"replicas": 1}}
    mounting = [{"name": "v", "persistentVolumeClaim": {"claimName": "faces"}}]
    reader = {
        "metadata": {"name": "reader", "namespace": "default"},
        "spec": {"volumes": mounting, "nodeName": "a"},
        "status": {"phase": "Running"},
    }
    down = {"metadata": {"name": "dataset-controller"}, "spec": {"replicas": 1}, "status": {}}
    steps: dict[str, list[Reply | Stream]] = {
        f"{CORE}/persistentvolumeclaims": [listed([])],
        f"{CORE}/pods": [listed([reader])],
        f"{CORE}/events": [listed([])],
        f"{FLUID}/datasets": [listed(data_sets)],
        f"{FLUID}/alluxioruntimes": [listed([runtime])],
        f"{FLUID}/dataloads": [listed([])],
        CONTROLLERS: [listed([down])],
    }
    return steps | {
        path: [replaced[path.rpartition("/")[2]]]
        for path in steps
        if path.rpartition("/")[2] in replaced
    }


def dataset(folder: Path, server: ScriptedServer, *words: str) -> subprocess.CompletedProcess[str]:
    place = str(kubeconfig(folder, server.url))
    return run_main("fairlead", ("dataset", *words, "--kubeconfig", place), environment(folder))


def sent(server: ScriptedServer) -> Counter[str]:
    return Counter(f"{each.method} {each.path.rpartition('/')[2]}" for each in server.seen)


def test_a_list_asks_for_nothing_else_while_no_data_set_is_stuck(tmp_path: Path) -> None:
    with ScriptedServer(script(data_set("Bound"))) as server:
        done = dataset(tmp_path, server, "list")
        assert (done.returncode, done.stderr) == (0, "")
        assert sent(server) == LISTS


def test_a_data_set_that_does_not_end_has_its_reasons(tmp_path: Path) -> None:
    with ScriptedServer(script(ENDING)) as server:
        done = dataset(tmp_path, server, "list")
        assert done.returncode == 0
        assert "NotReady (Terminating)" in done.stdout
        assert sent(server) == LISTS | {"GET deployments": 1, "GET pods": 1}
    for part in (
        "data set default/faces: Terminating for ",
        "pods mount it: `default/reader`",
        "`dataset-controller` in `fluid-system` is not ready (0 of 1)",
        "there is no Deployment `alluxioruntime-controller` in `fluid-system`",
        "finalizers that only Fluid may remove: `fluid-dataset-controller-finalizer`",
    ):
        assert part in done.stderr


def test_a_data_set_that_does_not_begin_asks_for_no_pods(tmp_path: Path) -> None:
    with ScriptedServer(script(data_set("NotBound"))) as server:
        done = dataset(tmp_path, server, "list")
        assert sent(server) == LISTS | {"GET deployments": 1}
    assert "data set default/faces: not Bound for " in done.stderr


def test_reasons_that_may_not_be_read_are_left_out(tmp_path: Path) -> None:
    with ScriptedServer(script(ENDING, deployments=FORBIDDEN, pods=FORBIDDEN)) as server:
        done = dataset(tmp_path, server, "list")
    assert done.returncode == 0
    assert "finalizers that only Fluid may remove" in done.stderr
    assert "controller` in `fluid-system`" not in done.stderr
    assert "pods mount it" not in done.stderr


def test_what_may_not_be_read_of_one_data_set_is_named(tmp_path: Path) -> None:
    refused = dict.fromkeys(("pods", "events", "dataloads", "deployments"), FORBIDDEN)
    with ScriptedServer(script(data_set("Bound"), **refused)) as server:
        done = dataset(tmp_path, server, "show", "faces")
    assert done.returncode == 0
    assert "not read: Fluid's controllers, pods, DataLoads, events" in done.stderr
    assert "Runtime:" in done.stdout
    assert "[Calculating]" not in done.stdout


def test_a_data_set_whose_kind_may_not_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    with ScriptedServer(script(datasets=FORBIDDEN)) as server:
        done = dataset(tmp_path, server, "show", "faces")
    assert done.returncode == 1
    assert "datasets.data.fluid.io not read: " in done.stderr
    assert "you may not" in done.stderr
