"""The API passes the requesting user to the admission hooks, whatever the verb, and a dry run is
judged in the same way.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.asgi import TOKEN, ask
from tests.sim.small_world import NAMESPACE, SHARED_POOL, get_pod, live, small_world
from tests.sim.small_world import pod as make_pod

from fairlead.rules.sharing.admission import GRANT_WRITERS
from fairlead.wire.names import ANNOTATION_ALLOCATION, ANNOTATION_GPU_ASSIGNED, ANNOTATION_GPU_INDEX
from fairlead_sim.api.server import ApiServer
from fairlead_sim.world.world import World

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_POLICY = "ValidatingAdmissionPolicy 'fairlead-gpu-grants' with binding 'fairlead-gpu-grants'"
DENIED = f"{_POLICY} denied request: only Fairlead writes the annotation"
AGENT = {"impersonate-user": sorted(GRANT_WRITERS)[0], "impersonate-group": "system:masters"}
MERGE = {"content-type": "application/merge-patch+json"}


class Api:
    def __init__(self) -> None:
        self.world: World = small_world(SHARED_POOL)
        self._app = ApiServer(self.world.cluster, self.world.clock, [TOKEN])

    async def __call__(self, method: str, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        return await ask(self._app, method, path, json.dumps(body).encode(), headers)


def forged(name: str) -> dict[str, Any]:
    obj = make_pod(name, gpu_memory=4)
    return {**obj, "metadata": {**obj["metadata"], "annotations": {ANNOTATION_GPU_INDEX: "0"}}}


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
async def test_a_forged_grant_is_refused(query: str) -> None:
    api = Api()
    status, body = await api("POST", f"{PODS}{query}", forged("p"))
    assert (status, body["reason"], body["message"]) == (
        403,
        "Forbidden",
        (f'pods "p" is forbidden: {DENIED} {ANNOTATION_GPU_INDEX}'),
    )
    assert body["details"]["causes"] == [{"message": f"{DENIED} {ANNOTATION_GPU_INDEX}"}]


async def test_a_pod_with_a_shared_gpu_is_sent_to_fairleads_scheduler() -> None:
    api = Api()
    status, body = await api("POST", f"{PODS}?dryRun=All", make_pod("p", gpu_memory=4))
    assert (status, body["spec"]["schedulerName"]) == (201, "fairlead-scheduler")
    assert api.world.cluster.get(api.world.cluster.kind_of(body), NAMESPACE, "p") is None


async def test_patches_of_a_grant_are_the_node_agents_alone() -> None:
    api = Api()
    await api("POST", PODS, make_pod("p", gpu_memory=4))
    live(api.world, 20)
    before = get_pod(api.world)["metadata"]["annotations"]
    patch = {"metadata": {"annotations": {ANNOTATION_GPU_ASSIGNED: "again"}}}
    for change in (patch, {"metadata": {"annotations": {ANNOTATION_ALLOCATION: None}}}):
        status, body = await api("PATCH", f"{PODS}/p", change, **MERGE)
        assert (status, DENIED in body["message"]) == (403, True)
    assert get_pod(api.world)["metadata"]["annotations"] == before
    assert (await api("PATCH", f"{PODS}/p", patch, **MERGE, **AGENT))[0] == 200
    assert get_pod(api.world)["metadata"]["annotations"][ANNOTATION_GPU_ASSIGNED] == "again"


async def test_a_binding_with_a_grant_is_the_extenders_alone() -> None:
    api = Api()
    obj = make_pod("p", gpu_memory=4, schedulerName="volcano")
    await api("POST", PODS, obj)
    grant = {ANNOTATION_GPU_INDEX: "0"}
    binding = {
        "metadata": {"name": "p", "annotations": grant},
        "target": {"kind": "Node", "name": "shared-1"},
    }
    status, body = await api("POST", f"{PODS}/p/binding", binding)
    assert (status, body["message"]) == (
        403,
        (f'pods "p" is forbidden: {DENIED} {ANNOTATION_GPU_INDEX}'),
    )
    assert (await api("POST", f"{PODS}/p/binding", binding, **AGENT))[0] == 201
    assert get_pod(api.world)["spec"]["nodeName"] == "shared-1"
