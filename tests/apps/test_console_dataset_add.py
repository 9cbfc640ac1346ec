"""Data sets over an object store, a claim or another source, made through the console."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.apps.dataset_console import sent
from tests.console.data_parts import StillData, claim, data_set

PREVIEW = "/datasets?dryRun=true"
KEY = "AKSECRET-of-005"
STORE = {"endpoint": "oss.example", "secret": "keys", "idKey": "id"}


def order(mount: str = "oss://bucket/faces", **more: Any) -> dict[str, Any]:
    return {"namespace": "a-ns", "name": "faces", "mount": mount, **more}


def with_secret(*rows: Any, is_there: bool | None = True) -> StillData:
    data = StillData(*rows)
    data.secrets["a-ns/keys"] = is_there
    return data


async def test_an_object_store_is_checked_shown_and_becomes_an_operation(tmp_path: Any) -> None:
    async with sent(tmp_path, with_secret()) as send:
        status, body = await send("anna", "POST", PREVIEW, order(**STORE))
        assert (status, body["valid"], body["fields"]) == (200, True, [])
        assert body["line"] == (
            "fairlead dataset add faces -n a-ns --mount oss://bucket/faces --endpoint oss.example "
            "--from-secret keys:id,accessKeySecret --workers 2 --quota 16Gi"
        )
        assert {each["check"]: each["state"] for each in body["checks"]}["secret"] == "ok"
        made, runtime = yaml.safe_load_all(body["manifests"])
        assert (made["kind"], runtime["kind"]) == ("Dataset", "AlluxioRuntime")
        (mount,) = made["spec"]["mounts"]
        assert mount["mountPoint"] == "oss://bucket/faces"
        assert mount["options"] == {"fs.oss.endpoint": "oss.example"}
        assert [
            (each["name"], each["valueFrom"]["secretKeyRef"]) for each in mount["encryptOptions"]
        ] == [
            ("fs.oss.accessKeyId", {"name": "keys", "key": "id"}),
            ("fs.oss.accessKeySecret", {"name": "keys", "key": "accessKeySecret"}),
        ]
        assert send.records.by_id == {} and await send.audit() == []
        status, body = await send("anna", "POST", "/datasets", order(**STORE))
        assert status == 202
        recorded = send.records.by_id[body["operation"]]
        assert (recorded.kind, recorded.subject) == ("accelerate", "dataset/a-ns/faces")
        assert await send.audit() == [("datasets.create", "ok", "Dataset faces")]
        status, body = await send("olga", "POST", "/datasets", order(**STORE))
        assert (status, [each["rule"] for each in body["fields"]]) == (409, ["operation"])


async def test_a_claim_is_accelerated_as_by_its_own_button(tmp_path: Any) -> None:
    async with sent(tmp_path, StillData(claim("raw"))) as send:
        status, body = await send("anna", "POST", PREVIEW, order("pvc://raw/images"))
        assert (status, body["valid"], body["line"]) == (
            200,
            True,
            "fairlead dataset accelerate raw -n a-ns --name faces --sub-path images --workers 2 "
            "--quota 5Gi",
        )
        status, body = await send("anna", "POST", "/datasets", order("pvc://none"))
        assert (status, [each["rule"] for each in body["fields"]]) == (409, ["claim-bound"])
        assert (await send("anna", "POST", "/datasets", order("pvc://raw")))[0] == 202


@pytest.mark.parametrize(
    ("data", "more", "rule"),
    [
        (with_secret(is_there=False), STORE, "secret"),
        (with_secret(data_set("faces", "raw")), STORE, "name-free"),
        (with_secret(), {**STORE, "workers": 3}, "nodes"),
    ],
    ids=["no secret", "taken", "nodes"],
)
async def test_a_failed_check_is_409_with_its_fix(
    tmp_path: Any, data: StillData, more: dict[str, Any], rule: str
) -> None:
    async with sent(tmp_path, data) as send:
        _, body = await send("anna", "POST", PREVIEW, order(**more))
        failed = {each["check"]: each["mend"] for each in body["checks"] if each["state"] == "fail"}
        assert rule in failed and all(failed.values())
        status, body = await send("anna", "POST", "/datasets", order(**more))
        assert (status, body["code"]) == (409, "blocked")
        assert {each["rule"] for each in body["fields"]} == set(failed)
        assert send.records.by_id == {}


async def test_a_secret_that_may_not_be_read_is_unknown(tmp_path: Any) -> None:
    async with sent(tmp_path, with_secret(is_there=None)) as send:
        _, body = await send("anna", "POST", PREVIEW, order(**STORE))
        states = {each["check"]: each["state"] for each in body["checks"]}
        assert (body["valid"], states["secret"]) == (True, "unknown")


async def test_without_a_secret_only_a_public_bucket_works_which_is_a_warning(
    tmp_path: Any,
) -> None:
    async with sent(tmp_path) as send:
        for mount, states in (("s3://bucket", ["warn"]), ("https://example.org/data", [])):
            _, body = await send("anna", "POST", PREVIEW, order(mount))
            found = [each["state"] for each in body["checks"] if each["check"] == "secret"]
            assert (body["valid"], found) == (True, states)


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (order("bucket"), ["mount"]),
        (order(f"s3://{KEY}@bucket"), ["mount"]),
        (order(f"https://example.org/x?sig={KEY}"), ["mount"]),
        (order("dataset://b-ns/theirs"), ["mount"]),
        (order("pvc://raw/../etc"), ["mount"]),
        (order("pvc://a%2Fb"), ["mount"]),
        (order("pvc://raw", **STORE), ["endpoint", "secret"]),
        (order("https://example.org", endpoint="oss.example"), ["endpoint"]),
        (order("https://example.org", secret="keys"), ["secret"]),
        (order(endpoint=f"https://user:{KEY}@oss.example"), ["endpoint"]),
        (order(secret=f"{KEY} {KEY}"), ["secret"]),
        (order(secret="keys", idKey=f"{KEY}/+="), ["idKey"]),
        (order(idKey="id", secretKey="key"), ["idKey", "secretKey"]),
        (order(secret="keys", namespace="../b-ns", name="a/b"), ["namespace", "name"]),
        (order(workers=-1, quota="lots", medium="TAPE"), ["workers", "medium", "quota"]),
        ({"namespace": "a-ns", "name": "x"}, ["mount"]),
    ],
    ids=str,
)
async def test_unreadable_fields_are_422_and_no_key_is_repeated(
    tmp_path: Any, given: dict[str, Any], fields: list[str]
) -> None:
    async with sent(tmp_path, StillData(claim("raw"))) as send:
        for path, expected in (("/datasets", 422), (PREVIEW, 200)):
            status, body = await send("anna", "POST", path, given)
            assert (status, [each["path"] for each in body["fields"]]) == (expected, fields)
            assert KEY not in str(body) and not body.get("valid", False)
        ((action, result, target),) = await send.audit()
        assert (action, result, target) == ("datasets.create", "refused", "Dataset ")
        assert send.records.by_id == {}


async def test_a_key_itself_has_no_field(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        status, body = await send("anna", "POST", "/datasets", order(accessKeySecret=KEY))
        assert status == 400 and "accessKeySecret" in str(body) and KEY not in str(body)
