"""Data sets and operations through the console: who may, what is checked, what is recorded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import structs
from tests.apps.dataset_console import ACCELERATION, sent
from tests.apps.described_answers import check_against, description
from tests.console.clusters import EPOCH
from tests.console.data_parts import MemoryRecords, StillData, claim, data_set, runtime
from tests.waiting import until

from fairlead.errors import OutsideError
from fairlead.model.actions import ObjectRef
from fairlead.model.jobs.acceleration import DataUser
from fairlead.model.operations.operation import (
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    ReadyStep,
    StepProgress,
    StepState,
)
from fairlead.model.pod import Owner, Pod, PodPhase
from fairlead.model.source import Source, SourceState
from fairlead.rules.installation.comparable import content_version
from fairlead.rules.operations.progress import superseded
from fairlead.wire.data.fluid import WireDataset, parse_dataset
from fairlead.wire.operations.document import history_row


def waiting(id: str = "plan1", **more: Any) -> Operation:
    """An operation of one step that waits for a claim."""
    target = ObjectRef("v1", "PersistentVolumeClaim", "raw", "a-ns")
    given = {
        "state": OperationState.PLANNED,
        "created_by": "anna",
        "created_at": EPOCH - 60,
        "updated_at": EPOCH - 60,
        **more,
    }
    return Operation(
        id=id,
        kind=OperationKind.PREHEAT,
        subject="dataset/a-ns/raw-acc",
        steps=(OperationStep(f"{target.title} is Bound", ReadyStep((target,))),),
        progress=(StepProgress(),),
        **given,
    )


async def test_the_list_has_claims_and_data_sets_with_what_accelerates_them(tmp_path: Any) -> None:
    data = StillData(
        claim("raw"),
        claim("raw-acc", is_fluids=True),
        data_set("raw-acc", "raw"),
        runtime("raw-acc"),
        claim("cold", phase="Pending"),
    )
    async with sent(tmp_path, data) as send:
        _, body = await send("anna", "GET", "/datasets")
        assert [
            (row["kind"], row["name"], row["accelerated"], row["acceleratedBy"], row["status"])
            for row in body["items"]
        ] == [
            ("PersistentVolumeClaim", "cold", False, [], "NotReady"),
            ("PersistentVolumeClaim", "raw", True, ["raw-acc"], "Ready"),
            ("Dataset", "raw-acc", True, [], "Ready"),
        ]
        assert body["sentence"]["text"] == "1 data set; 1 of 2 claims accelerated; 1 not ready."
        assert body["warnings"] == []
        _, found = await send("anna", "GET", "/datasets?accelerated=no")
        assert [row["name"] for row in found["items"]] == ["cold"]
        _, found = await send("anna", "GET", "/datasets?q=pv-raw&sort=-sizeBytes")
        assert [row["name"] for row in found["items"]] == ["raw"]


async def test_without_fluid_the_page_is_partial_and_not_empty(tmp_path: Any) -> None:
    async with sent(tmp_path, StillData(claim("raw"), has_fluid=False)) as send:
        _, body = await send("anna", "GET", "/datasets")
        assert [row["name"] for row in body["items"]] == ["raw"]
        (warning,) = body["warnings"]
        assert (warning["code"], warning["source"]) == ("crd-missing", "datasets.data.fluid.io")


async def test_a_preview_makes_all_checks_and_writes_nothing(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        status, body = await send("anna", "POST", f"{ACCELERATION}?dryRun=true", {})
        assert (status, body["valid"]) == (200, True)
        assert {each["state"] for each in body["checks"]} == {"ok"}
        assert body["chosen"] == {
            "name": "raw-acc",
            "folder": "",
            "workers": 2,
            "medium": "MEM",
            "quota": "5Gi",
            "node": "",
        }
        assert body["line"] == (
            "fairlead dataset accelerate raw -n a-ns --name raw-acc --workers 2 --quota 5Gi"
        )
        assert "kind: AlluxioRuntime" in body["manifests"]
        assert send.records.by_id == {} and await send.audit() == []


async def test_a_failed_check_refuses_with_its_fix_and_records_nothing(tmp_path: Any) -> None:
    async with sent(tmp_path, StillData(claim("raw", phase="Pending"))) as send:
        order = {"name": "Bad_Name"}
        status, body = await send("anna", "POST", f"{ACCELERATION}?dryRun=true", order)
        assert (status, body["valid"]) == (200, False)
        failed = {each["check"]: each["mend"] for each in body["checks"] if each["state"] == "fail"}
        assert set(failed) == {"claim-bound", "name"} and all(failed.values())
        status, body = await send("anna", "POST", ACCELERATION, order)
        assert (status, body["code"]) == (409, "blocked")
        assert {(each["path"], each["rule"]) for each in body["fields"]} == {
            ("", "claim-bound"),
            ("name", "name"),
        }
        assert send.records.by_id == {}
        assert await send.audit() == [("datasets.create", "refused", "Dataset Bad_Name")]


@pytest.mark.parametrize(
    ("order", "fields"),
    [
        ({"quota": "lots"}, ["quota"]),
        ({"quota": "-1Gi", "workers": -1}, ["workers", "quota"]),
        ({"folder": "a/../b", "medium": "TAPE"}, ["folder", "medium"]),
        ({"workers": "two"}, ["workers"]),
    ],
)
async def test_all_unreadable_fields_are_one_422(
    tmp_path: Any, order: dict[str, Any], fields: list[str]
) -> None:
    async with sent(tmp_path) as send:
        status, body = await send("anna", "POST", ACCELERATION, order)
        assert (status, [each["path"] for each in body["fields"]]) == (422, fields)


async def test_an_unknown_claim_is_404(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        status, body = await send("anna", "POST", "/volumes/a-ns/none/acceleration", {})
        assert (status, body["code"]) == (404, "not-found")


async def test_a_click_becomes_an_operation_that_ends_bound(tmp_path: Any) -> None:
    async with sent(tmp_path, carries_out=True) as send:
        headers = {"Authorization": "Bearer token-of-anna", "Content-Type": "application/json"}
        status, answered, _ = await send.page.get(
            f"/api/v1{ACCELERATION}", method="POST", data=b"{}", headers=headers
        )
        assert status == 202
        place = answered["Location"].removeprefix("/api/v1")
        _, body = await send("anna", "GET", place)
        assert [each["title"] for each in body["steps"]] == [
            "Create Dataset a-ns/raw-acc",
            "Create AlluxioRuntime a-ns/raw-acc",
            "Dataset a-ns/raw-acc is Bound",
        ]
        _, listed = await send("anna", "GET", "/datasets")
        (own,) = (row for row in listed["items"] if row["name"] == "raw")
        assert own["operation"] in ("", place.rpartition("/")[2])

        async def has_ended() -> bool:
            return bool((await send("anna", "GET", place))[1]["row"]["state"] == "Succeeded")

        await until(has_ended)
        _, body = await send("anna", "GET", place)
        assert {each["state"] for each in body["steps"]} == {"Done"}
        assert (body["canCancel"], body["canRetry"]) == (False, False)
        made = send.objects.objects["Dataset a-ns/raw-acc"]
        id = place.rpartition("/")[2]
        assert made["metadata"]["annotations"]["fairlead.io/operation"] == id
        assert await send.audit() == [("datasets.create", "ok", "Dataset raw-acc")]


async def test_a_running_operation_blocks_another_of_the_same_data_set(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        assert (await send("anna", "POST", ACCELERATION, {}))[0] == 202
        status, body = await send("olga", "POST", ACCELERATION, {})
        assert (status, body["code"]) == (409, "blocked")
        assert [each["rule"] for each in body["fields"]] == ["operation"]


async def test_a_data_set_in_use_is_not_removed(tmp_path: Any) -> None:
    data = StillData(
        claim("raw"),
        data_set("raw-acc", "raw", references=("b-ns/theirs",)),
        runtime("raw-acc"),
    )
    data.pods.append(DataUser("a-ns", "trainer", "raw-acc", "gpu-1"))
    async with sent(tmp_path, data) as send:
        status, body = await send("anna", "DELETE", "/datasets/a-ns/raw-acc")
        assert (status, body["code"]) == (409, "blocked")
        assert [each["error"] for each in body["fields"]] == [
            "pods mount it: `a-ns/trainer`",
            "data sets refer to it: `b-ns/theirs`",
        ]
        _, seen = await send("bob", "GET", "/datasets/a-ns/raw-acc/blockers")
        assert seen["blockers"] == [
            "pods mount it: `a-ns/trainer`",
            "data sets refer to it: `another namespace`",
        ]
        data.pods.clear()
        data.rows[1] = data_set("raw-acc", "raw")
        status, body = await send("anna", "DELETE", "/datasets/a-ns/raw-acc?dryRun=true")
        assert [(each["verb"], each["kind"]) for each in body["effects"]] == [
            ("delete", "Dataset"),
            ("delete", "AlluxioRuntime"),
            ("delete", "PersistentVolume"),
        ]
        assert (await send("anna", "DELETE", "/datasets/a-ns/raw-acc"))[0] == 202


async def test_a_researcher_reads_the_own_namespaces_and_writes_nothing(tmp_path: Any) -> None:
    data = StillData(claim("raw"), data_set("raw-acc", "raw"), claim("other", "b-ns"))
    async with sent(tmp_path, data, MemoryRecords(waiting())) as send:
        _, body = await send("bob", "GET", "/datasets")
        assert {row["namespace"] for row in body["items"]} == {"a-ns"}
        assert body["facets"]["namespace"] == ["a-ns"]
        assert (await send("bob", "GET", "/datasets/b-ns/other"))[0] == 404
        for method, path, order in (
            ("POST", ACCELERATION, {}),
            ("DELETE", "/datasets/a-ns/raw-acc", None),
            ("POST", "/datasets/a-ns/raw-acc/preheats", {}),
            ("PATCH", "/datasets/a-ns/raw-acc", {"workers": 1}),
            ("POST", "/datasets", {"namespace": "a-ns", "name": "x", "mount": "s3://b"}),
            ("GET", "/operations", None),
            ("GET", "/operations/plan1", None),
            ("POST", "/operations", {"planId": "plan1"}),
            ("DELETE", "/operations/plan1", None),
            ("POST", "/operations/plan1/retry", {}),
        ):
            status, body = await send("bob", method, path, order)
            assert (status, body["code"]) == (403, "forbidden"), path


async def test_a_plan_is_for_the_person_who_made_it(tmp_path: Any) -> None:
    async with sent(tmp_path, records=MemoryRecords(waiting())) as send:
        status, foreign = await send("olga", "POST", "/operations", {"planId": "plan1"})
        _, unknown = await send("olga", "POST", "/operations", {"planId": "plan2"})
        assert (status, foreign["code"]) == (404, "not-found")
        assert foreign["error"].replace("plan1", "X") == unknown["error"].replace("plan2", "X")
        assert (await send("olga", "GET", "/operations"))[1]["items"] == []
        status, body = await send("anna", "POST", "/operations", {"planId": "plan1"})
        assert (status, body) == (202, {"operation": "plan1"})
        assert send.records.by_id["plan1"].state is OperationState.RUNNING
        status, body = await send("anna", "POST", "/operations", {"planId": "plan1"})
        assert (status, body["code"]) == (409, "blocked")


@pytest.mark.parametrize(
    "plan",
    [
        waiting(created_at=EPOCH - 16 * 60),
        waiting(seen={"PersistentVolumeClaim a-ns/raw": "7"}),
        waiting(seen={"Secret a-ns/unknown": "7"}),
    ],
    ids=["old", "changed", "of an object that no step names"],
)
async def test_a_stale_plan_is_409(tmp_path: Any, plan: Operation) -> None:
    async with sent(tmp_path, records=MemoryRecords(plan)) as send:
        status, body = await send("anna", "POST", "/operations", {"planId": "plan1"})
        assert (status, body["code"]) == (409, "blocked")
        assert "make a new one" in body["error"]
        assert send.records.by_id["plan1"].state is OperationState.PLANNED


async def test_a_plan_starts_while_the_objects_that_it_has_seen_are_unchanged(
    tmp_path: Any,
) -> None:
    title = "PersistentVolumeClaim a-ns/raw"
    obj: Any = {"kind": "PersistentVolumeClaim", "metadata": {"uid": "u", "resourceVersion": "7"}}
    plans = [waiting(id, seen={title: content_version(obj)}) for id in ("plan1", "plan2")]
    async with sent(tmp_path, records=MemoryRecords(*plans), carries_out=True) as send:
        obj["spec"] = {"volumeName": "raw"}
        send.objects.objects[title] = obj
        status, body = await send("anna", "POST", "/operations", {"planId": "plan1"})
        assert (status, body["code"]) == (409, "blocked")
        assert f"changed since plan `plan1` was made: {title}" in body["error"]
        del obj["spec"]
        obj["metadata"]["resourceVersion"], obj["status"] = "8", {"phase": "Bound"}
        assert (await send("anna", "POST", "/operations", {"planId": "plan2"}))[0] == 202


async def test_rows_name_the_pods_that_mount_them(tmp_path: Any) -> None:
    data = StillData(
        claim("raw"), data_set("raw-acc", "raw"), runtime("raw-acc"), claim("b", "b-ns")
    )
    mounting = [
        *(Pod("a-ns", f"reader-{at}", f"r{at}", claims=("raw-acc", "raw-acc")) for at in range(7)),
        Pod("a-ns", "writer", "w", claims=("raw", "logs")),
        Pod("a-ns", "ended", "e", claims=("raw",), phase=PodPhase.SUCCEEDED),
        Pod("b-ns", "other", "o", claims=("raw", "b")),
    ]
    async with sent(tmp_path, data, pods=mounting) as send:
        _, body = await send("anna", "GET", "/datasets")
        found = {row["name"]: (row["users"], row["usedBy"]) for row in body["items"]}
        first = [f"reader-{at}" for at in range(5)]
        assert found == {"raw": (1, ["writer"]), "raw-acc": (7, first), "b": (1, ["other"])}
        _, body = await send("bob", "GET", "/datasets")
        assert {row["name"]: row["users"] for row in body["items"]} == {"raw": 1, "raw-acc": 7}
        assert "other" not in str(body["items"])


async def test_the_users_of_a_data_set_are_jobs_with_their_pods(tmp_path: Any) -> None:
    data = StillData(claim("raw"), data_set("raw-acc", "raw"), runtime("raw-acc"))
    owner = Owner("ReplicaSet", "web-5d", "r", controller=True)
    data.pods += [
        DataUser("a-ns", "web-5d-0", "raw-acc", "gpu-1", owner),
        DataUser("a-ns", "web-5d-1", "raw-acc", "", owner),
        DataUser("a-ns", "reader", "raw-acc", "gpu-1"),
        DataUser("a-ns", "newer", "raw-acc", "", Owner("Job", "load", "j", controller=True)),
    ]
    web = [
        Pod(
            "a-ns",
            f"web-5d-{at}",
            claims=("raw-acc",),
            labels={"pod-template-hash": "5d"},
            owners=(owner,),
        )
        for at in range(2)
    ]
    async with sent(tmp_path, data, pods=[*web, Pod("a-ns", "reader", claims=("raw-acc",))]) as ask:
        _, body = await ask("anna", "GET", "/datasets/a-ns/raw-acc")
        found = [(each["kind"], each["name"], each["pods"]) for each in body["users"]]
        waiting, running = {"name": "web-5d-1", "node": ""}, {"name": "web-5d-0", "node": "gpu-1"}
        assert found == [
            ("Deployment", "web", [running, waiting]),
            ("Job", "load", [{"name": "newer", "node": ""}]),  # not in the snapshot yet
            ("Pod", "reader", [{"name": "reader", "node": "gpu-1"}]),
        ]
        _, body = await ask("anna", "GET", "/datasets")
        used = {row["name"]: row["usedBy"] for row in body["items"]}
        assert used["raw-acc"] == ["Deployment/web", "reader"]


async def test_ended_operations_are_read_from_the_history_when_their_records_are_gone(
    tmp_path: Any,
) -> None:
    done = waiting("live", state=OperationState.SUCCEEDED)
    steps = (StepProgress(StepState.FAILED, EPOCH - 90, EPOCH - 30, message="no answer"),)
    failed = waiting("old5", state=OperationState.FAILED, message="it failed")
    failed = structs.replace(failed, created_at=EPOCH - 400, progress=steps)
    async with sent(tmp_path, records=MemoryRecords(done)) as send:
        rows = [waiting(f"old{at}", created_at=EPOCH - 500 + at) for at in range(1, 5)]
        for each in (*rows, failed, done):
            await send.store.keep_operation(history_row(each))
        path = "/operation-history?size=2"
        described = description()
        answer = described["paths"]["/operation-history"]["get"]["responses"]["200"]
        schema = answer["content"]["application/json"]["schema"]
        pages = []
        while True:
            status, page = await send("anna", "GET", path)
            assert status == 200, page
            check_against(page, schema, described["components"]["schemas"])
            pages.append([row["id"] for row in page["items"]])
            if not page["before"]:
                break
            path = f"/operation-history?size=2&before={page['before']}"
        # one that has its record is on the list of operations
        assert pages == [["old5", "old4"], ["old3", "old2"], ["old1"]]
        _, listed = await send("anna", "GET", "/operations")
        assert [row["id"] for row in listed["items"]] == ["live"]
        status, found = await send("olga", "GET", "/operations/old5")
        assert (status, found["row"]["state"], found["canRetry"]) == (200, "Failed", False)
        assert [(each["state"], each["message"]) for each in found["steps"]] == [
            ("Failed", "no answer")
        ]
        assert (found["row"]["step"], found["row"]["message"]) == (
            "PersistentVolumeClaim a-ns/raw is Bound",
            "it failed",
        )
        assert (await send("anna", "GET", "/operations/old9"))[0] == 404
        assert (await send("anna", "POST", "/operations/old5/retry", {}))[0] == 404
        for path in ("/operation-history", "/operations/old5"):
            assert (await send("bob", "GET", path))[0] == 403
        for wrong, what in (
            ("before=1", "`before` is `1`"),
            ("before=1-%3Ca", "`before` is `1-<a`"),
            ("size=501", "`size` is `501`"),
            ("page=2", "unknown query parameter `page`"),
        ):
            status, fault = await send("anna", "GET", f"/operation-history?{wrong}")
            assert status == 400 and what in fault["error"], fault


async def test_an_operation_is_cancelled_and_carried_out_again(tmp_path: Any) -> None:
    running = waiting("op1", state=OperationState.RUNNING)
    async with sent(tmp_path, records=MemoryRecords(running)) as send:
        assert (await send("anna", "POST", "/operations/op1/retry", {}))[0] == 409
        assert (await send("olga", "DELETE", "/operations/op1"))[0] == 202
        assert send.records.by_id["op1"].is_cancelled
        assert (await send("olga", "DELETE", "/operations/op1"))[0] == 409
        ended = structs.replace(
            send.records.by_id["op1"],
            state=OperationState.CANCELLED,
            progress=(StepProgress(StepState.SKIPPED),),
        )
        send.records.by_id["op1"] = ended
        assert (await send("anna", "POST", "/operations/op1/retry", {}))[0] == 202
        again = send.records.by_id["op1"]
        assert (again.state, again.is_cancelled) == (OperationState.RUNNING, False)
        assert again.progress == (StepProgress(),)
        assert await send.audit() == [
            ("operations.update", "refused", "Operation op1"),
            ("operations.delete", "ok", "Operation op1"),
            ("operations.delete", "refused", "Operation op1"),
            ("operations.update", "ok", "Operation op1"),
        ]


async def test_an_operation_that_a_command_replaced_is_not_carried_out_again(tmp_path: Any) -> None:
    """Its plan is older than what the command has written."""
    message = "`fairlead upgrade` went on in its place"
    running = waiting("op1", state=OperationState.RUNNING)
    replaced = superseded(running, EPOCH, "fairlead upgrade")
    async with sent(tmp_path, records=MemoryRecords(replaced)) as send:
        _, shown = await send("anna", "GET", "/operations/op1")
        assert (shown["canRetry"], shown["row"]["message"]) == (False, message)
        status, fault = await send("anna", "POST", "/operations/op1/retry", {})
        assert (status, fault["error"]) == (409, f"operation `op1` cannot begin again: {message}")
        assert fault["hint"] == "its plan is older than what is there now; make a new one"
        assert send.records.by_id["op1"].state is OperationState.CANCELLED


@pytest.mark.parametrize("id", ["../x", "%2e%2e", "A", "a" * 50, "no-such"])
async def test_a_strange_id_is_404(tmp_path: Any, id: str) -> None:
    async with sent(tmp_path) as send:
        assert (await send("anna", "GET", f"/operations/{id}"))[0] == 404


async def test_no_answer_has_a_secret_value(tmp_path: Any) -> None:
    """Of a data set as an API server has it: keys in plain options, and Secrets that are named."""
    secret = "AKSECRET-of-004"
    wire = {
        "metadata": {"name": "bucket", "namespace": "a-ns", "creationTimestamp": None},
        "spec": {
            "mounts": [
                {
                    "mountPoint": "oss://bucket/data",
                    "name": "bucket",
                    "options": {"fs.oss.endpoint": "oss.example", "fs.oss.accessKeySecret": secret},
                    "encryptOptions": [
                        {
                            "name": "fs.oss.accessKeyId",
                            "valueFrom": {"secretKeyRef": {"name": "keys", "key": "id"}},
                        }
                    ],
                }
            ]
        },
    }
    found = parse_dataset(msgspec.convert(wire, WireDataset))
    async with sent(tmp_path, StillData(found, runtime("bucket"))) as send:
        for path in ("/datasets", "/datasets?format=csv", "/datasets/a-ns/bucket"):
            headers = {"Authorization": "Bearer token-of-anna"}
            status, _, body = await send.page.get(f"/api/v1{path}", headers=headers)
            assert status == 200 and secret.encode() not in body
        _, detail = await send("anna", "GET", "/datasets/a-ns/bucket")
        (mount,) = detail["mounts"]
        assert "fs.oss.endpoint=oss.example" in mount["options"]
        assert mount["secrets"] == ["fs.oss.accessKeyId: keys/id"]
        await send("anna", "DELETE", "/datasets/a-ns/bucket")
        (recorded,) = send.records.by_id.values()
        assert secret not in str(recorded)


async def test_a_preheat_is_checked_and_becomes_an_operation(tmp_path: Any) -> None:
    data = StillData(claim("raw"), data_set("raw-acc", "raw"), runtime("raw-acc"))
    place = "/datasets/a-ns/raw-acc/preheats"
    async with sent(tmp_path, data) as send:
        status, body = await send("anna", "POST", place, {"replicas": 0, "schedule": "often"})
        assert (status, [each["path"] for each in body["fields"]]) == (
            422,
            ["replicas", "schedule"],
        )
        status, body = await send("anna", "POST", place, {"paths": ["/a b"], "replicas": 9})
        assert (status, {each["path"] for each in body["fields"]}) == (409, {"paths", "replicas"})
        status, body = await send("anna", "POST", place, {"paths": ["images"], "replicas": 2})
        assert status == 202
        made = send.records.by_id[body["operation"]]
        load = made.steps[0].work.manifest  # type: ignore[union-attr]
        assert load["spec"]["target"] == [{"path": "/images", "replicas": 2}]
        status, body = await send("anna", "POST", "/datasets/a-ns/none/preheats", {})
        assert status == 404


async def test_hints_name_data_sets_that_changed(tmp_path: Any) -> None:
    """While a page shows them, and for those alone who see the change."""
    data = StillData(claim("raw"), claim("other", "b-ns"))
    async with sent(tmp_path, data) as send:
        versions = {}
        for who in ("anna", "bob"):
            await send(who, "GET", "/datasets")
            versions[who] = (await send(who, "GET", "/versions"))[1]["datasets"]
        data.rows.append(claim("new", "b-ns"))

        async def has_moved() -> bool:
            found = (await send("anna", "GET", "/versions"))[1]
            return bool(found["datasets"] != versions["anna"])

        await until(has_moved)
        assert (await send("bob", "GET", "/datasets"))[1]["total"] == 1
        assert (await send("bob", "GET", "/versions"))[1]["datasets"] == versions["bob"]


async def test_an_api_server_that_is_away_is_an_error_and_not_an_empty_list(tmp_path: Any) -> None:
    data = StillData(claim("raw"))
    data.failure = OutsideError("kubernetes", "no answer", "look at it")
    async with sent(tmp_path, data) as send:
        status, body = await send("anna", "GET", "/datasets")
        assert (status, body["code"]) == (502, "outside-failed")
        data.failure = None
        data.sources = {
            "persistentvolumeclaims": Source(
                "persistentvolumeclaims", SourceState.FORBIDDEN, "forbidden: no right"
            )
        }
        data.rows.clear()
        status, body = await send("anna", "GET", "/datasets")
        assert (status, body["code"]) == (403, "forbidden")
