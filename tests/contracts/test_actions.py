"""Contract: every action ends the same way in both worlds, executed by services (`Cluster.apply`)
and by the command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.contracts.api_client import ApiClient
from tests.contracts.objects import config_map, config_maps, deployment, deployments, job, pod, pods

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.object_writer import ObjectWriter
from fairlead.model.actions import (
    Action,
    BindPod,
    CreateObject,
    DeleteObject,
    ObjectAction,
    ObjectRef,
    Outcome,
    PatchObject,
    RecordEvent,
    Result,
    ScaleJob,
    TouchPod,
    WriteGrants,
    object_ref,
)
from fairlead.model.devices.gpu import Grant
from fairlead.model.pod import Pod

Apply = Callable[[ObjectAction], Outcome]
ELSEWHERE = "11111111-2222-3333-4444-555555555555"


def as_service(api: ApiClient, action: Action) -> Outcome:
    connection = find_connection(str(api.kubeconfig), env={})
    assert connection is not None

    async def whole() -> Outcome:
        async with KubeApi(connection) as kube:
            return await KubeCluster(kube, WallClock()).apply(action)

    return asyncio.run(whole())


def as_command(api: ApiClient, action: ObjectAction) -> Outcome:
    connection = find_connection(str(api.kubeconfig), env={})
    assert connection is not None
    with KubeBlocking(connection) as kube:
        return ObjectWriter(kube).apply(action)


@pytest.fixture(params=[as_service, as_command])
def apply(request: pytest.FixtureRequest, api: ApiClient) -> Apply:
    return lambda action: request.param(api, action)


def test_what_is_created_comes_back_and_a_second_one_is_there(apply: Apply, space: str) -> None:
    made = apply(CreateObject(config_map("c", {"a": "1"}), space))
    assert (made.result, made.made and made.made["data"]) == (Result.DONE, {"a": "1"})
    again = apply(CreateObject(config_map("c", {"a": "2"}), space))
    assert (again.result, again.made) == (Result.THERE, None)
    assert again.reason == 'configmaps "c" already exists'


def test_the_namespace_of_the_object_comes_first(apply: Apply, api: ApiClient, space: str) -> None:
    assert apply(CreateObject(config_map("c", namespace=space), "default")).result is Result.DONE
    assert api.get(config_maps(space, "c")).status == 200


def test_what_the_server_finds_wrong_is_refused_in_its_words(apply: Apply, space: str) -> None:
    refused = apply(CreateObject(config_map("Not A Name"), space))
    assert refused.result is Result.REFUSED and "Invalid value" in refused.reason
    strict = apply(CreateObject({**config_map("c"), "dta": {}}, space, is_strict=True))
    assert strict.result is Result.REFUSED and 'unknown field "dta"' in strict.reason


def test_a_kind_that_is_not_served_is_refused_before_anything_is_sent(
    apply: Apply, space: str
) -> None:
    refused = apply(
        CreateObject(
            {"apiVersion": "nobody.io/v1", "kind": "Nothing", "metadata": {"name": "n"}}, space
        )
    )
    assert refused.result is Result.REFUSED and refused.reason == (
        "the cluster serves no Nothing of `nobody.io/v1`"
    )


def test_a_namespace_that_is_absent(apply: Apply) -> None:
    refused = apply(CreateObject(config_map("c"), "nowhere"))
    assert refused.result is Result.REFUSED and 'namespaces "nowhere" not found' in refused.reason


def test_a_kind_that_only_discovery_knows(apply: Apply, api: ApiClient, space: str) -> None:
    assert apply(CreateObject(job("j"), space)).result is Result.DONE
    ref = ObjectRef("batch/v1", "Job", "j", space)
    patched = apply(PatchObject(ref, {"spec": {"parallelism": 3}}))
    assert patched.made is not None and patched.made["spec"]["parallelism"] == 3


def test_a_patch_meets_this_very_object_or_none(apply: Apply, api: ApiClient, space: str) -> None:
    made = apply(CreateObject(config_map("c", {"a": "1"}), space)).made
    assert made is not None
    there = object_ref(made)
    patched = apply(PatchObject(there, {"data": {"a": "2"}}))
    assert patched.made is not None and patched.made["data"] == {"a": "2"}
    another = ObjectRef("v1", "ConfigMap", "c", space, uid=ELSEWHERE)
    assert apply(PatchObject(another, {"data": {"a": "3"}})).result is Result.GONE
    assert apply(DeleteObject(another)).result is Result.GONE
    assert api.get(config_maps(space, "c")).body["data"] == {"a": "2"}
    assert (
        apply(PatchObject(ObjectRef("v1", "ConfigMap", "not-there", space), {"data": {}})).result
        is Result.GONE
    )


def test_a_patch_that_is_based_on_an_old_version_is_refused(apply: Apply, space: str) -> None:
    assert apply(CreateObject(config_map("c", {"a": "1"}), space)).result is Result.DONE
    old = {"metadata": {"resourceVersion": "1"}, "data": {"a": "2"}}
    refused = apply(PatchObject(ObjectRef("v1", "ConfigMap", "c", space), old))
    assert refused.result is Result.REFUSED and "the object has been modified" in refused.reason


def test_a_status_alone(apply: Apply, api: ApiClient, space: str) -> None:
    assert apply(CreateObject(deployment("web"), space)).result is Result.DONE
    ref = ObjectRef("apps/v1", "Deployment", "web", space)
    condition = {"type": "Ours", "status": "True", "reason": "R", "message": "m"}
    patched = apply(
        PatchObject(ref, {"status": {"conditions": [condition]}, "spec": {"replicas": 7}}, "status")
    )
    assert patched.result is Result.DONE
    found = api.get(deployments(space, "web")).body
    assert [each["type"] for each in found["status"]["conditions"] if each["type"] == "Ours"] == [
        "Ours"
    ]
    assert found["spec"]["replicas"] == 0


def test_what_is_deleted_twice_is_gone(apply: Apply, space: str) -> None:
    made = apply(CreateObject(config_map("c"), space)).made
    assert made is not None
    assert apply(DeleteObject(object_ref(made))).result is Result.DONE
    assert apply(DeleteObject(object_ref(made))).result is Result.GONE


# --- what only services do: pods and Events -------------------------------------------------------


@pytest.fixture
def waiting(api: ApiClient, space: str) -> Pod:
    made = api.post(pods(space), pod("p")).body
    return Pod(space, "p", made["metadata"]["uid"])


GRANTS = {"main": (Grant("GPU-0", 0, 4, 4096),)}


def test_grants_and_a_touch_are_written_on_this_very_pod(api: ApiClient, waiting: Pod) -> None:
    another = Pod(waiting.namespace, "p", ELSEWHERE)
    for target, result in (
        (waiting, Result.DONE),
        (another, Result.GONE),
        (Pod(waiting.namespace, "q", ELSEWHERE), Result.GONE),
    ):
        assert as_service(api, TouchPod(target)).result is result
        assert as_service(api, WriteGrants(target, GRANTS, 15, is_first=True)).result is result
    annotations = api.get(pods(waiting.namespace, "p")).body["metadata"]["annotations"]
    assert "scheduler.framework.gpushare.allocation" in annotations


def test_a_pod_is_bound_once_and_another_of_its_name_never(api: ApiClient, waiting: Pod) -> None:
    another = Pod(waiting.namespace, "p", ELSEWHERE)
    refused = as_service(api, BindPod(another, "n", GRANTS, 15))
    assert refused.result is Result.REFUSED and "precondition" in refused.reason.lower()
    assert as_service(api, BindPod(waiting, "n", GRANTS, 15)).result is Result.DONE
    again = as_service(api, BindPod(waiting, "m", GRANTS, 15))
    assert again.result is Result.UNKNOWN and "already assigned" in again.reason
    assert api.get(pods(waiting.namespace, "p")).body["spec"]["nodeName"] == "n"


OWN, LOWERED = "fairlead.io/parallelism", "fairlead.io/lowered-parallelism"


@pytest.mark.parametrize(
    "notes", [{}, {"their": "own"}], ids=["without annotations", "with annotations"]
)
def test_a_job_is_lowered_and_raised_and_what_its_owner_wrote_meanwhile_stays(
    api: ApiClient, space: str, notes: dict[str, str]
) -> None:
    template = pod("p")["spec"] | {"restartPolicy": "Never"}
    meta = {"name": "j", **({"annotations": notes} if notes else {})}
    path = f"/apis/batch/v1/namespaces/{space}/jobs"
    spec = {"parallelism": 4, "suspend": True, "template": {"spec": template}}
    made = api.post(
        path, {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    ).body

    def job() -> tuple[int, bool, dict[str, str]]:
        found = api.get(f"{path}/j").body
        return (
            found["spec"]["parallelism"],
            found["spec"]["suspend"],
            found["metadata"].get("annotations") or {},
        )

    ref = ObjectRef("batch/v1", "Job", "j", space, made["metadata"]["uid"])
    lowered = ScaleJob(ref, 4, 3, 4, is_resumed=True, priority=7, has_annotations=bool(notes))
    assert as_service(api, lowered).result is Result.DONE
    marks = {OWN: "4", LOWERED: "3", "fairlead.io/suspended-priority": "7"}
    assert job() == (3, False, notes | marks)
    assert as_service(api, lowered).result is Result.REFUSED, "it is 3 by now"
    assert (
        as_service(api, replace(lowered, target=replace(ref, uid=ELSEWHERE), before=3)).result
        is Result.REFUSED
    )
    api.patch(f"{path}/j", {"spec": {"parallelism": 2}})
    assert as_service(api, ScaleJob(ref, 3, 4, 4, has_annotations=True)).result is Result.REFUSED
    assert job() == (2, False, notes | marks)
    assert as_service(api, ScaleJob(ref, 2, 4, 4, has_annotations=True)).result is Result.DONE
    assert job() == (4, False, notes)
    assert as_service(api, ScaleJob(replace(ref, name="not-there"), 4, 3, 4)).result is Result.GONE


def test_an_event_is_reported(api: ApiClient, waiting: Pod) -> None:
    assert (
        as_service(api, RecordEvent(waiting, "GPUShareNoRoom", "no card has room")).result
        is Result.DONE
    )
    [answer] = api.get(f"/api/v1/namespaces/{waiting.namespace}/events").body["items"]
    assert (answer["reason"], answer["involvedObject"]["uid"], answer["type"]) == (
        "GPUShareNoRoom",
        waiting.uid,
        "Warning",
    )
