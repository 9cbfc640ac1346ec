"""Cordon and uncordon a node, suspend, resume and delete a job: as the user who asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from tests.apps.running_console import console
from tests.apps.tree_writes import FakeWrites
from tests.console.clusters import EPOCH, cluster, gpu_node, training_job
from tests.console.sign_in_parts import ANNA, BOB, FakeSignInApi, Parts, group
from tests.console.worlds import still_world

from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.model.actions import DeleteObject, PatchObject
from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR
from fairlead.model.records.audit import AuditFilter

Send = Any
BOBS, ANNAS = (f"system:serviceaccount:kube-ai:{name}" for name in ("bob", "anna"))


def own(name: str = "bert", **more: Any) -> Any:
    return replace(training_job(name, **more), namespace="a-ns")


@asynccontextmanager
async def acting(tmp_path: Any, writes: FakeWrites) -> AsyncIterator[Send]:
    jobs = [
        own(),
        replace(own("held"), annotations={ANNOTATION_SUSPENDED_FOR: "b-ns/claim"}, suspended=True),
        own("ended", state="Succeeded", finished_at=EPOCH - 1),
        replace(own("old"), kind="MPIJob", type="mpijob", api_version="kubeflow.org/v1alpha1"),
        replace(training_job("foreign"), namespace="b-ns"),
    ]
    store = await open_store(store_address(f"sqlite:///{tmp_path}/store.sqlite"))
    desk = Parts(FakeSignInApi((ANNA, BOB), (group("a"),))).desk(records=store)
    world = replace(still_world(cluster([gpu_node()], [], jobs)), writes=writes)
    async with console(world, desk=desk) as page:

        async def send(
            who: str, method: str, path: str, body: Any = None, query: str = ""
        ) -> tuple[int, Any]:
            return await page.ask_as(who, method, path + query, body)

        send.store = store  # type: ignore[attr-defined]
        yield send
    await store.close()


def job(name: str, type_: str = "pytorchjob", place: str = "a-ns") -> str:
    return f"/jobs/{place}/{type_}/{name}"


async def test_an_administrator_cordons_and_uncordons_a_node_as_the_user(tmp_path: Any) -> None:
    writes = FakeWrites()
    async with acting(tmp_path, writes) as send:
        for schedulable, patch in ((False, True), (True, None)):
            body = {"schedulable": schedulable}
            tried = await send("anna", "PATCH", "/nodes/gpu-1", body, "?dryRun=true")
            assert tried[1]["effects"] == [
                {"verb": "update", "kind": "Node", "namespace": "", "name": "gpu-1"}
            ]
            assert len(writes.asked) == int(schedulable)
            status, answer = await send("anna", "PATCH", "/nodes/gpu-1", body)
            assert (status, answer) == (200, {"name": "gpu-1", "schedulable": schedulable})
            action, account = writes.asked[-1]
            assert isinstance(action, PatchObject)
            assert (action.patch["spec"], account) == ({"unschedulable": patch}, ANNAS)
        status, answer = await send("bob", "PATCH", "/nodes/gpu-1", {"schedulable": False})
        assert (status, answer["code"], len(writes.asked)) == (403, "forbidden", 2)


async def test_a_researcher_suspends_resumes_and_deletes_own_jobs(tmp_path: Any) -> None:
    writes = FakeWrites()
    async with acting(tmp_path, writes) as send:
        assert (await send("bob", "PATCH", job("bert"), {"suspended": True}))[0] == 200
        action, account = writes.asked[-1]
        assert isinstance(action, PatchObject)
        assert action.patch["spec"] == {"runPolicy": {"suspend": True}}
        assert action.patch["metadata"]["annotations"][ANNOTATION_SUSPENDED_FOR] is None
        assert account == BOBS
        assert (await send("bob", "PATCH", job("bert"), {"suspended": False}))[0] == 200
        status, answer = await send("bob", "DELETE", job("bert"))
        assert (status, answer["deleted"]) == (200, "bert")
        action, account = writes.asked[-1]
        assert isinstance(action, DeleteObject) and action.target.name == "bert"
        assert account == BOBS
        rows = [
            (each.action, str(each.result), each.target.name)
            async for each in send.store.audit_rows(AuditFilter())
        ]
        assert rows == [
            ("jobs.update", "ok", "bert"),
            ("jobs.update", "ok", "bert"),
            ("jobs.delete", "ok", "bert"),
        ]


@pytest.mark.parametrize(
    ("path", "suspended", "status", "sentence"),
    [
        (job("ended"), True, 409, "the pytorchjob `ended` has ended"),
        (job("old", "mpijob"), True, 409, "a MPIJob of `v1alpha1` cannot be suspended"),
        (
            job("held"),
            False,
            409,
            "quota has suspended the job for another team, and resumes it itself",
        ),
        (job("foreign", place="b-ns"), True, 404, "you have no namespace `b-ns`"),
        (job("none"), True, 404, "there is no pytorchjob `none` in namespace `a-ns`"),
    ],
)
async def test_a_job_that_cannot_be_turned_gives_the_reason(
    tmp_path: Any, path: str, suspended: bool, status: int, sentence: str
) -> None:
    writes = FakeWrites()
    async with acting(tmp_path, writes) as send:
        found, answer = await send("bob", "PATCH", path, {"suspended": suspended})
        assert (found, answer["error"]) == (status, sentence)
        assert answer["hint"]
        assert writes.asked == []


async def test_what_the_api_server_refuses_is_refused_and_noted(tmp_path: Any) -> None:
    writes = FakeWrites()
    writes.forbidden = {BOBS}
    async with acting(tmp_path, writes) as send:
        status, answer = await send("bob", "DELETE", job("bert"))
        assert (status, answer["code"]) == (403, "forbidden")
        rows = [str(each.result) async for each in send.store.audit_rows(AuditFilter())]
        assert rows == ["refused"]
