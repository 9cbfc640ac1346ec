"""The number of workers of a data set, changed through the console."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from tests.apps.dataset_console import ACCELERATION, sent
from tests.console.data_parts import StillData, claim, data_set, runtime

from fairlead.errors import ChangedMeanwhile
from fairlead.model.actions import PatchObject

PLACE = "/datasets/a-ns/raw-acc"
ANNAS = "system:serviceaccount:kube-ai:anna"


def cached(*, modes: tuple[str, ...] = ("ReadWriteMany",), **more: Any) -> StillData:
    """A data set of two workers, over a claim."""
    own = runtime("raw-acc", replicas=2, uid="uid-runtime")
    return StillData(
        claim("raw", access_modes=modes),
        structs.replace(data_set("raw-acc", "raw"), **more),
        own,
    )


async def test_the_runtime_gets_the_workers_as_the_user_who_asks(tmp_path: Any) -> None:
    async with sent(tmp_path, cached()) as send:
        status, body = await send("anna", "PATCH", f"{PLACE}?dryRun=true", {"workers": 1})
        assert (status, body["valid"], body["line"]) == (
            200,
            True,
            "fairlead dataset scale raw-acc -n a-ns --workers 1",
        )
        assert {each["check"]: each["state"] for each in body["checks"]} == {
            "runtime": "ok",
            "idle": "warn",
            "nodes": "ok",
        }
        assert [(each["verb"], each["kind"]) for each in body["effects"]] == [
            ("update", "AlluxioRuntime")
        ]
        assert send.writes.asked == [] and await send.audit() == []
        status, body = await send("anna", "PATCH", PLACE, {"workers": 1})
        assert (status, body) == (200, {"namespace": "a-ns", "name": "raw-acc", "workers": 1})
        ((action, account),) = send.writes.asked
        assert isinstance(action, PatchObject)
        assert (action.target.title, action.target.uid, action.patch, account) == (
            "AlluxioRuntime a-ns/raw-acc",
            "uid-runtime",
            {"spec": {"replicas": 1}},
            ANNAS,
        )
        assert await send.audit() == [("datasets.update", "ok", "Dataset raw-acc")]


async def test_the_same_number_writes_nothing(tmp_path: Any) -> None:
    async with sent(tmp_path, cached()) as send:
        _, body = await send("anna", "PATCH", f"{PLACE}?dryRun=true", {"workers": 2})
        assert (body["valid"], body["effects"]) == (True, [])
        assert (await send("anna", "PATCH", PLACE, {"workers": 2}))[0] == 200
        assert send.writes.asked == []


@pytest.mark.parametrize(
    ("data", "workers", "rule"),
    [
        (cached(), 3, "nodes"),
        (cached(modes=("ReadWriteOnce",)), 2, "access-mode"),
        (cached(operations=("DataLoad warm",)), 1, "idle"),
        (cached(is_ending=True), 1, "runtime"),
        (StillData(claim("raw"), data_set("raw-acc", "raw")), 1, "runtime"),
    ],
    ids=["nodes", "one node", "loading", "ending", "no runtime"],
)
async def test_a_failed_check_refuses_with_its_reason(
    tmp_path: Any, data: StillData, workers: int, rule: str
) -> None:
    async with sent(tmp_path, data) as send:
        status, body = await send("anna", "PATCH", PLACE, {"workers": workers})
        assert (status, body["code"]) == (409, "blocked")
        assert [each["rule"] for each in body["fields"]] == [rule]
        _, preview = await send("anna", "PATCH", f"{PLACE}?dryRun=true", {"workers": workers})
        assert not preview["valid"] and preview["effects"] == []
        assert send.writes.asked == []


async def test_an_operation_at_work_blocks(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        assert (await send("anna", "POST", ACCELERATION, {}))[0] == 202
        send.data.rows += cached().rows[1:]
        status, body = await send("anna", "PATCH", PLACE, {"workers": 1})
        assert (status, [each["rule"] for each in body["fields"]]) == (409, ["operation"])


async def test_a_number_that_is_none_is_422_and_an_unknown_data_set_is_404(tmp_path: Any) -> None:
    async with sent(tmp_path, cached()) as send:
        for workers in (0, -1, 1001, "two"):
            status, body = await send("anna", "PATCH", PLACE, {"workers": workers})
            assert (status, [each["path"] for each in body["fields"]]) == (422, ["workers"])
        for name in ("none", "raw"):
            place = f"/datasets/a-ns/{name}"
            assert (await send("anna", "PATCH", place, {"workers": 1}))[0] == 404
        assert send.writes.asked == []


async def test_what_the_api_server_refuses_is_answered_as_it_is(tmp_path: Any) -> None:
    async with sent(tmp_path, cached()) as send:
        send.writes.forbidden.add(ANNAS)
        status, body = await send("anna", "PATCH", PLACE, {"workers": 1})
        assert (status, body["code"]) == (403, "forbidden")

        def replaced() -> None:
            raise ChangedMeanwhile("kubernetes", "the uid is another one")

        send.writes.before = replaced
        assert (await send("anna", "PATCH", PLACE, {"workers": 1}))[0] == 409
