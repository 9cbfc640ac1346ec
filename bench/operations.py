"""Operations on a real API server: the cost of records, and how soon another process goes on."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.objects import namespace
from tests.kube.programs import program
from tests.waiting import wait_until

from bench.support.options import options
from bench.support.processes import Cost, print_costs, run
from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART
from fairlead.model.operations.operation import (
    ApplyStep,
    OperationKind,
    OperationStep,
    ReadyStep,
)
from fairlead.rules.operations.progress import begun, planned
from fairlead.wire.operations.record import record_name, render_record

FAIRLEAD = str(Path(sys.executable).parent / "fairlead")
SYSTEM, SPACE = "fairlead-system", "component"
OBJECTS, APPLY_AIM = 60, 1.2
LEASE_SECONDS, RESUME_AIM_SECONDS = 30.0, 2.0
OWN, PEER = "fairlead operation", "kubectl apply --server-side"


def measure_operation_apply() -> None:
    """A component of 60 objects, applied step by step with a record, against kubectl's apply.

        python -m bench operation_apply [--runs 5]

    On a real API server, in fresh processes that take turns; before each run the objects are
    removed. A step is one object; eight of a kind run side by side. The second figure is the time
    of the steps alone, from the record: what a console that runs already needs.
    """
    parser = options(measure_operation_apply)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    costs: dict[str, list[Cost]] = {OWN: [], PEER: []}
    alone: list[float] = []
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        _prepare(cluster)
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        objects = [_config_map(f"part-{number}") for number in range(OBJECTS)]
        file = Path(home) / "objects.yaml"
        file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        apply = [str(program("kubectl")), "apply", "--server-side", "-f", str(file)]
        steps = tuple(
            OperationStep(f"Apply {each['metadata']['name']}", ApplyStep(each)) for each in objects
        )
        for number in range(runs + 1):  # the first of each warms server and caches
            id = f"apply{number}"
            _record(cluster, id, steps)
            for name, words in ((OWN, [FAIRLEAD, "operation", "resume", id]), (PEER, apply)):
                cluster.admin.run("delete", "configmap", "--all", "-n", SPACE)
                cost = run(words, env)
                if number:
                    costs[name].append(cost)
            if number:
                alone.append(_seconds_of_steps(cluster, id))
    found = {
        name: Cost(*map(statistics.median, zip(*rows, strict=True))) for name, rows in costs.items()
    }
    print_costs(found, [PEER], runs)
    ratio, steps_ratio = (
        each / found[PEER].wall for each in (found[OWN].wall, statistics.median(alone))
    )
    print(
        f"\naim: {ratio:.2f} x kubectl's wall, of the steps alone {steps_ratio:.2f} x "
        f"(<= {APPLY_AIM})"
    )


def measure_operation_resume() -> None:
    """From kill -9 of the process at work until another process has finished the operation.

        python -m bench operation_resume [--runs 3]

    On a real API server. `fairlead operation resume` starts when the process dies, waits for the
    Lease of 30 seconds, and then has one step to finish.
    """
    parser = options(measure_operation_resume)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    took: list[float] = []
    with running_control_plane() as cluster, tempfile.TemporaryDirectory() as home:
        _prepare(cluster)
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        for number in range(runs):
            id, later = f"resume{number}", f"later-{number}"
            target = ObjectRef("v1", "ConfigMap", later, SPACE)
            _record(cluster, id, (OperationStep("ready", ReadyStep((target,))),))
            words = [FAIRLEAD, "operation", "resume", id]
            with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL) as first:
                wait_until("it waits", partial(_waits, cluster, record_name(id)))
                first.send_signal(signal.SIGKILL)
                began = time.monotonic()
            cluster.admin.create([_config_map(later)])
            subprocess.run(words, env=env, check=True, capture_output=True)
            took.append(time.monotonic() - began)
            print(f"{took[-1]:.1f} s; load {os.getloadavg()[0]:.1f}", flush=True)
    worst = max(took) - LEASE_SECONDS
    print(
        f"\naim: {worst:+.1f} s beside the Lease of {LEASE_SECONDS:.0f} s, the longest of {runs} "
        f"(<= +{RESUME_AIM_SECONDS:.0f} s)"
    )


def _prepare(cluster: ControlPlane) -> None:
    system = namespace(SYSTEM)
    system["metadata"]["labels"] = {INSTALLATION_LABEL: SYSTEM_PART}
    cluster.admin.create([system, namespace(SPACE)])


def _record(cluster: ControlPlane, id: str, steps: tuple[OperationStep, ...]) -> None:
    plan = planned(id, OperationKind.DEPLOY, f"component/{id}", steps, now=time.time())
    cluster.admin.create([render_record(begun(plan, "", time.time()), SYSTEM)])


def _config_map(name: str) -> Manifest:
    meta: dict[str, Any] = {"name": name, "namespace": SPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "b"}}


def _seconds_of_steps(cluster: ControlPlane, id: str) -> float:
    state = json.loads(_state(cluster, record_name(id)))
    began = min(each["startedAt"] for each in state["steps"])
    return max(each["endedAt"] for each in state["steps"]) - float(began)


def _waits(cluster: ControlPlane, name: str) -> bool:
    return "does not exist" in _state(cluster, name)


def _state(cluster: ControlPlane, name: str) -> str:
    found = cluster.admin.get("configmaps", "-n", SYSTEM)
    [record] = [each for each in found if each["metadata"]["name"] == name]
    return str(record["data"]["state"])
