"""What is removed of nodes and namespaces, which jobs are let go, and what holds an object."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installation import Installation
from fairlead.rules.installation.endings import defined_kind, held_sentence, is_stopped
from fairlead.rules.installation.held_jobs import release_of
from fairlead.rules.installation.traces import traces_of
from fairlead.wire.installation.components import every_object, installed_objects
from fairlead.wire.quota.tree_definition import quota_tree_definition

Object = dict[str, Any]
NAME, MEMORY = "aliyun.accelerator/nvidia_name", "aliyun.accelerator/nvidia_mem"
COUNT = "aliyun.com/gpu-count"


def _entry(manager: str, fields: Object, **more: str) -> Object:
    return {"manager": manager, "fieldsV1": fields, **more}


def _node(*entries: Object) -> Object:
    """A node on which an agent, its kubelet and a user wrote."""
    counts = {COUNT: "2", "cpu": "8", "nvidia.com/gpu": "0"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "uid": "u",
            "labels": {NAME: "Tesla-T4", MEMORY: "15079MiB", "fairlead.io/gpu-isolation": "none"},
            "annotations": {"fairlead.io/gpus": "[]", "team": "mine"},
            "managedFields": list(entries),
        },
        "status": {
            "capacity": counts,
            "allocatable": counts,
            "conditions": [{"type": "Ready"}, {"type": "GPUShareReady"}],
        },
    }


def test_of_a_node_only_what_fairlead_wrote_is_removed() -> None:
    own = {"f:labels": {".": {}, f"f:{MEMORY}": {}}}
    amounts = {"f:capacity": {f"f:{COUNT}": {}}, "f:allocatable": {f"f:{COUNT}": {}}}
    node = _node(
        _entry("fairlead", {"f:metadata": own}),
        _entry("fairlead", {"f:status": amounts}, subresource="status"),
        _entry("kubectl-label", {"f:metadata": {"f:labels": {f"f:{NAME}": {}}}}),
        _entry("kubelet", {"f:status": {"f:capacity": {"f:cpu": {}, "f:nvidia.com/gpu": {}}}}),
    )
    meta, status = traces_of(node)
    assert (meta.target.uid, meta.subresource, status.subresource) == ("u", "", "status")
    assert meta.patch == {
        "metadata": {
            "labels": {MEMORY: None, "fairlead.io/gpu-isolation": None},
            "annotations": {"fairlead.io/gpus": None},
        }
    }
    assert status.is_strategic
    assert status.patch == {
        "status": {
            "capacity": {COUNT: None},
            "allocatable": {COUNT: None},
            "conditions": [{"$patch": "delete", "type": "GPUShareReady"}],
        }
    }


def test_a_node_or_namespace_without_traces_is_not_written() -> None:
    meta = {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}}
    assert traces_of({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}) == []
    own = {"name": "gpus", "labels": {"fairlead.io/installation": "system"}}
    assert traces_of({"apiVersion": "v1", "kind": "Namespace", "metadata": own}) == []
    assert traces_of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}) == []


def _job(kind: str, spec: Object, **marks: str) -> Object:
    api_version = "batch/v1" if kind == "Job" else "kubeflow.org/v1"
    names = {f"fairlead.io/{name.replace('_', '-')}": text for name, text in marks.items()}
    meta = {"name": "j", "namespace": "team", "uid": "u", "annotations": names}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    ("job", "spec"),
    [
        pytest.param(
            _job("Job", {"suspend": True}, suspended_for="a/b"), {"suspend": False}, id="suspended"
        ),
        pytest.param(
            _job("TFJob", {"runPolicy": {"suspend": True}}, suspended_for="first-admission"),
            {"runPolicy": {"suspend": False}},
            id="of a training operator",
        ),
        pytest.param(
            _job("Job", {"parallelism": 1}, parallelism="4", lowered_parallelism="1"),
            {"parallelism": 4},
            id="lowered",
        ),
        pytest.param(
            _job("Job", {"parallelism": 2}, parallelism="4", lowered_parallelism="1"),
            None,
            id="its owner chose another number since",
        ),
        pytest.param(_job("Job", {"suspend": True}), None, id="suspended by its owner"),
        pytest.param(_job("Job", {"suspend": False}, suspended_for="a/b"), None, id="runs"),
    ],
)
def test_a_job_goes_on_as_its_owner_wrote_it(job: Object, spec: Object | None) -> None:
    released = release_of(job)
    if spec is None:
        assert released is None
        return
    assert released is not None
    assert released.patch["spec"] == spec
    assert released.patch["metadata"] == {
        "annotations": dict.fromkeys(job["metadata"]["annotations"])
    }
    assert released.target.uid == "u"


def test_a_workload_has_stopped_when_only_foreign_finalizers_hold_it() -> None:
    ending = {"deletionTimestamp": "now", "finalizers": ["example.com/held", "foregroundDeletion"]}
    assert is_stopped(None)
    assert not is_stopped({"metadata": {}})
    assert not is_stopped({"metadata": ending})
    assert is_stopped({"metadata": {**ending, "finalizers": ["example.com/held"]}})


def test_a_sentence_names_what_holds_and_by_which_finalizer() -> None:
    namespace = ObjectRef("v1", "Namespace", "fairlead-system")
    rows = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{number}", "namespace": "x"}}
        for number in range(12)
    ]
    rows[0]["metadata"]["finalizers"] = ["example.com/held"]
    words = held_sentence([namespace], rows)
    assert words.startswith(
        "still being deleted: Namespace fairlead-system; held by Secret x/s0 (finalizer "
        "`example.com/held`), Secret x/s1"
    )
    assert words.endswith("Secret x/s9 and 2 more")
    assert held_sentence([namespace], []) == "still being deleted: Namespace fairlead-system"


def test_the_definition_names_the_kind_of_the_tree() -> None:
    kind = defined_kind(quota_tree_definition())
    assert (kind.api_version, kind.kind) == ("scheduling.sigs.k8s.io/v1beta1", "ElasticQuotaTree")


def test_every_object_has_those_of_each_installation() -> None:
    objects = every_object(Installation())
    every = {object_ref(each).identity for each in objects}
    assert len(every) == len(objects)
    for chosen in (Installation(), Installation(admission="webhooks", scheduler="control-plane")):
        assert {object_ref(each).identity for each in installed_objects(chosen)} < every
