"""`arena scaleout etjob` and `arena scalein etjob`: the object that is created, and
when none is.
"""

from __future__ import annotations

import importlib
import io
import json
import shlex
from typing import Any, cast

import msgspec
import pytest
import yaml
from tests.cli.api_objects import Object
from tests.cli.command import Printed
from tests.cli.job_objects import CREATED, as_pod, moment
from tests.cli.submitting import KeepingCluster, SubmitWorld

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.parser import VerbModule, global_options, make_parser, split_verb
from fairlead.cli.snapshot.jobs import SnapshotJobs
from fairlead.cli.snapshot.reader import SnapshotReader
from fairlead.errors import UserError
from fairlead.kinds.training import etjob
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.run.machine import OwnMachine

NOW = 1_767_607_260.0


def elastic(
    phase: str, workers: int, least: int | None = 1, most: int | None = 4
) -> ClusterSnapshot:
    """A job `bert` with its launcher and workers."""
    bounds = {
        key: value
        for key, value in (("minReplicas", least), ("maxReplicas", most))
        if value is not None
    }
    specs = {"launcher": {"replicas": 1}, "worker": {"replicas": 2, **bounds}}
    meta = {
        "name": "bert",
        "namespace": "default",
        "uid": "uid-bert",
        "creationTimestamp": moment(0),
        "labels": {"app": "etjob"},
    }
    wire: Any = msgspec.json.decode(
        json.dumps(
            {"metadata": meta, "spec": {"etReplicaSpecs": specs}, "status": {"phase": phase}}
        ),
        type=etjob.WIRE,
    )
    pods = [
        _pod("launcher", "bert-launcher"),
        *(_pod("worker", f"bert-worker-{number}") for number in range(workers)),
    ]
    return ClusterSnapshot(
        jobs=(etjob.parse(wire, "v1alpha1"),),
        pods=tuple(as_pod(each) for each in pods),
        taken_at=CREATED,
    )


def _pod(role: str, name: str) -> Object:
    owner = {"kind": "TrainingJob", "name": "bert", "uid": "uid-bert", "controller": True}
    labels = {"training-job-name": "bert", "training-job-role": role}
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": labels,
        "ownerReferences": [owner],
        "creationTimestamp": moment(0),
    }
    return {
        "metadata": metadata,
        "spec": {"nodeName": "n1", "containers": [{"name": "et"}]},
        "status": {"phase": "Running"},
    }


class _World(SubmitWorld):
    def __init__(self, cluster: KeepingCluster | None, found: ClusterSnapshot) -> None:
        super().__init__(cluster, "default")
        self._found = found

    def jobs(self) -> Any:
        return SnapshotJobs(SnapshotReader(self._found, "a snapshot of the tests"))


def scale(line: str, cluster: KeepingCluster | None, found: ClusterSnapshot) -> Printed:
    verb, rest = split_verb(shlex.split(line), "arena")
    assert verb is not None, line
    out, err = io.StringIO(), io.StringIO()
    module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
    args = make_parser(module, "arena").parse(rest)
    messages = Messages("arena", err, now=lambda: 0.0)
    context = Context(
        "arena",
        global_options(args),
        messages,
        _World(cluster, found),
        out,
        {},
        lambda: NOW,
        lambda _: None,
        OwnMachine({}),
    )
    return Printed(module.run(args, context), out.getvalue(), err.getvalue())


@pytest.mark.parametrize(
    ("verb", "kind", "field", "script"),
    [
        ("scaleout", "ScaleOut", "toAdd", "/usr/local/bin/scaler.sh --add"),
        ("scalein", "ScaleIn", "toDelete", "/usr/local/bin/scaler.sh --delete"),
    ],
)
def test_what_is_made(verb: str, kind: str, field: str, script: str) -> None:
    cluster = KeepingCluster()
    result = scale(f"{verb} etjob --name bert", cluster, elastic("Running", 2))
    assert result.out == f"{kind.lower()}.kai.alibabacloud.com/bert-1767607260 created\n"
    assert f"The {verb} job bert-1767607260 has been submitted successfully" in result.err
    owner = {
        "apiVersion": "kai.alibabacloud.com/v1alpha1",
        "kind": "TrainingJob",
        "name": "bert",
        "uid": "uid-bert",
        "controller": False,
    }
    assert cluster.created == [
        {
            "apiVersion": "kai.alibabacloud.com/v1alpha1",
            "kind": kind,
            "metadata": {
                "name": "bert-1767607260",
                "namespace": "default",
                "ownerReferences": [owner],
            },
            "spec": {
                "selector": {"name": "bert"},
                "script": script,
                "backoffLimit": 0,
                "timeout": 60,
                field: {"count": 1},
            },
        }
    ]


def test_flags_and_a_dry_run() -> None:
    cluster = KeepingCluster()
    line = "scaleout et --name bert --count 2 -t 2m --retry 3 --script 'grow it' -e A=1 --dry-run"
    (shown,) = yaml.safe_load_all(scale(line, cluster, elastic("Scaling", 2)).out)
    assert shown["spec"] == {
        "selector": {"name": "bert"},
        "script": "grow it",
        "env": [{"name": "A", "value": "1"}],
        "backoffLimit": 3,
        "timeout": 120,
        "toAdd": {"count": 2},
    }
    assert cluster.created == []


@pytest.mark.parametrize(
    ("line", "found", "words"),
    [
        (
            "scaleout etjob --name bert --count 3",
            elastic("Running", 2),
            (
                "the number of scaling out plus the number of current workers exceeds "
                "the max-workers. please try again later."
            ),
        ),
        (
            "scalein etjob --name bert --count 2",
            elastic("Running", 2),
            (
                "the number of current workers minus the number of scaling in is less "
                "than the min-workers. please try again later."
            ),
        ),
        (
            "scaleout etjob --name bert",
            elastic("Succeeded", 0),
            "the job: bert status: SUCCEEDED , is not RUNNING or SCALING, please try again later",
        ),
        (
            "scaleout etjob --name nope",
            elastic("Running", 2),
            "training job not found,please use 'arena list' to make sure job is existed",
        ),
        ("scaleout etjob", elastic("Running", 2), 'required flag(s) "name" not set'),
        (
            "scaleout etjob --name bert --count 0",
            elastic("Running", 2),
            "failed to validate command args: --count is invalid",
        ),
        (
            "scaleout etjob --name bert -t soon",
            elastic("Running", 2),
            ('invalid argument "soon" for "--timeout" flag: time: invalid duration "soon"'),
        ),
        (
            "scaleout etjob --name bert -e A",
            elastic("Running", 2),
            "failed to validate command args: --env is invalid: `A`",
        ),
    ],
)
def test_what_is_refused(line: str, found: ClusterSnapshot, words: str) -> None:
    cluster = KeepingCluster()
    with pytest.raises(UserError) as caught:
        scale(line, cluster, found)
    assert caught.value.what == words
    assert cluster.calls == []


def test_without_bounds_of_its_own_the_operators_count() -> None:
    cluster = KeepingCluster()
    scale("scalein etjob --name bert --count 1", cluster, elastic("Running", 2, None, None))
    scale("scaleout etjob --name bert --count 998", cluster, elastic("Running", 2, None, None))
    assert [
        each["spec"].get("toAdd", each["spec"].get("toDelete")) for each in cluster.created
    ] == [{"count": 1}, {"count": 998}]
    with pytest.raises(UserError) as caught:
        scale("scaleout etjob --name bert --count 999", cluster, elastic("Running", 2, None, None))
    assert caught.value.what == (
        "the number of scaling out plus the number of current workers exceeds the "
        "max-workers. please try again later."
    )


def test_without_a_cluster() -> None:
    with pytest.raises(UserError) as caught:
        scale("scaleout etjob --name bert", None, elastic("Running", 2))
    assert caught.value.what == "there is no cluster to submit to"
