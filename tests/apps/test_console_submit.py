"""POST /jobs: the objects of `arena submit`, tried and created as the user who asks."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml
from msgspec import convert
from msgspec.structs import replace
from tests.apps.running_console import console
from tests.apps.submit_forms import FORMS
from tests.cli.submitting import KeepingCluster, create, submit
from tests.console.clusters import EPOCH, cluster, gpu_node, training_job
from tests.console.sign_in_parts import ANNA, BOB, FakeSignInApi, Parts, group
from tests.console.worlds import still_world

from fairlead.console.http.writing.job_forms import WrittenJob
from fairlead.console.pages.writing.jobs import JobSubmission
from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.errors import AlreadyExists, Forbidden, InvalidObject, NotFound, OutsideError
from fairlead.kinds.submission import Served
from fairlead.model.actions import CreateObject, DeleteObject, ObjectAction, ObjectRef, PatchObject
from fairlead.model.jobs.job import Job
from fairlead.model.quota.rows import Namespace
from fairlead.model.records.audit import AuditFilter
from fairlead.model.source import Source

BOBS, ANNAS = (f"system:serviceaccount:kube-ai:{name}" for name in ("bob", "anna"))
VERSIONS = {
    "pytorchjobs": ("v1",),
    "mpijobs": ("v2beta1",),
    **dict.fromkeys(("trainingjobs", "crons"), ("v1alpha1",)),
    "deployments": ("v1",),
    "inferenceservices": ("v1beta1",),
}
IMAGE = {"image": "i"}


class Creating:
    """An API server that creates objects. `made`: those that exist. `faults`: by kind, what its
    creation raises. `calls`: verb, kind and the account that asked.
    """

    def __init__(self, versions: dict[str, tuple[str, ...]] | None = None) -> None:
        self.versions = VERSIONS if versions is None else versions
        self.made: list[dict[str, Any]] = []
        self.faults: dict[str, Exception] = {}
        self.stuck: set[str] = set()
        self.calls: list[tuple[str, str, str]] = []
        self.priorities = {"high": 1000}

    async def read(self, target: ObjectRef, account: str = "") -> dict[str, Any]:
        self.calls.append(("read", target.kind, account))
        if target.name not in self.priorities:
            raise NotFound("kubernetes", f"no {target.title}")
        return {"value": self.priorities[target.name]}

    async def write(self, action: ObjectAction, account: str = "") -> dict[str, Any] | None:
        if isinstance(action, CreateObject):
            manifest = copy.deepcopy(action.manifest)
            kind = manifest["kind"]
            self.calls.append(("try" if action.is_trial else "create", kind, account))
            if kind in self.faults:
                raise self.faults[kind]
            if any(self._key(each) == self._key(manifest) for each in self.made):
                raise AlreadyExists("kubernetes", "exists already")
            manifest["metadata"]["uid"] = f"uid-{kind}"
            if not action.is_trial:
                self.made.append(manifest)
            return manifest
        self.calls.append((type(action).__name__, action.target.kind, account))
        [found] = [each for each in self.made if each["metadata"]["uid"] == action.target.uid]
        if isinstance(action, PatchObject):
            found["metadata"] |= action.patch["metadata"]
            return found
        assert isinstance(action, DeleteObject)
        if action.target.kind in self.stuck:
            raise OutsideError("kubernetes", "no answer")
        self.made.remove(found)
        return None

    async def served(self, group: str, plural: str) -> tuple[str, ...]:
        return self.versions.get(plural, ())

    async def spec_fields(self, api_version: str, kind: str) -> frozenset[str] | None:
        return None

    @staticmethod
    def _key(manifest: dict[str, Any]) -> tuple[str, str, str]:
        meta = manifest["metadata"]
        return manifest["kind"], meta["namespace"], meta["name"]


Send = Any


@asynccontextmanager
async def submitting(tmp_path: Any, writes: Creating, **settings: Any) -> AsyncIterator[Send]:
    store = await open_store(store_address(f"sqlite:///{tmp_path}/store.sqlite"))
    desk = Parts(FakeSignInApi((ANNA, BOB), (group("a"),))).desk(records=store)
    names = tuple(map(Namespace, ("a-ns", "b-ns", "default")))
    read = {name: Source(name, good_at=EPOCH) for name in ("nodes", "pods", "namespaces")}
    seen = cluster([gpu_node()], [], settings.get("jobs", []), namespaces=names, sources=read)
    world = replace(still_world(seen), writes=writes, job_files=settings.get("files"))
    async with console(world, desk=desk, forms=settings.get("forms", FORMS)) as page:

        async def send(
            who: str,
            body: Any = None,
            query: str = "",
            *,
            path: str = "/jobs",
            method: str = "POST",
        ) -> tuple[int, Any]:
            return await page.ask_as(who, method, path + query, body)

        send.store = store  # type: ignore[attr-defined]
        yield send
    await store.close()


def body(type_: str = "pytorchjob", flags: dict[str, Any] | None = None, **more: Any) -> Any:
    asked = {"type": type_, "namespace": "a-ns", "name": "bert", "command": "python t.py"}
    return {**asked, **more, "flags": {**IMAGE, **(flags or {})}}


async def rows_of(send: Send) -> list[tuple[str, str, str, str]]:
    found = [each async for each in send.store.audit_rows(AuditFilter())]
    return [(each.action, str(each.result), each.target.kind, each.target.name) for each in found]


async def test_a_researcher_submits_as_the_user_and_the_audit_names_the_job(tmp_path: Any) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", body(flags={"gpus": "2"}))
        assert status == 201, answer
        assert answer["created"] == [
            {"verb": "create", "kind": "PyTorchJob", "namespace": "a-ns", "name": "bert"}
        ]
        assert writes.calls == [("create", "PyTorchJob", BOBS)]
        assert await rows_of(send) == [("jobs.create", "ok", "PyTorchJob", "bert")]
        made = writes.made[0]
        assert made["metadata"]["annotations"]["arena.kubeflow.org/username"] == BOBS


async def test_a_preview_tries_every_object_as_the_user_and_creates_nothing(tmp_path: Any) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        asked = body(flags={"tensorboard": True, "data": ["claim:/training_logs"], "gpus": "2"})
        status, answer = await send("bob", asked, "?dryRun=true")
        assert (status, answer["valid"], answer["fields"]) == (200, True, [])
        kinds = ["PyTorchJob", "Deployment", "Service"]
        assert writes.calls == [("try", kind, BOBS) for kind in kinds]
        assert [each["kind"] for each in answer["effects"]] == kinds
        assert writes.made == [] and await rows_of(send) == []
        assert answer["verdict"]["state"] == "starts"
        cli = submit(
            ["pytorchjob", *_words(answer["line"]), "--dry-run"], KeepingCluster(user=BOBS)
        )
        assert cli.out == answer["manifests"]


def _words(line: str) -> list[str]:
    import shlex

    return shlex.split(line)[3:]


async def test_an_administrator_submits_into_any_namespace(tmp_path: Any) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        assert (await send("anna", body(namespace="b-ns")))[0] == 201
        assert writes.calls == [("create", "PyTorchJob", ANNAS)]
        assert writes.made[0]["metadata"]["namespace"] == "b-ns"


@pytest.mark.parametrize("query", ["", "?dryRun=true"])
@pytest.mark.parametrize("place", ["b-ns", "none", "kube-system", "..", ""])
async def test_a_foreign_namespace_is_as_one_that_does_not_exist(
    tmp_path: Any, query: str, place: str
) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", body(namespace=place, flags={"cpu": "x"}), query)
        assert status == (404 if place else 400)
        if place:
            assert answer["error"] == f"you have no namespace `{place}`"
        assert answer["hint"] == "yours: a-ns"
        assert writes.calls == []


async def test_all_faults_come_at_once_and_nothing_is_asked(tmp_path: Any) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        asked = body(name="Bert", flags={"cpu": "4x", "gpus": "-1", "shell": True})
        status, answer = await send("bob", asked)
        assert (status, answer["code"]) == (422, "invalid")
        paths = {each["path"] for each in answer["fields"]}
        assert paths == {"name", "flags.cpu", "flags.gpus", "flags.shell"}
        status, tried = await send("bob", asked, "?dryRun=true")
        assert (status, tried["valid"], tried["fields"]) == (200, False, answer["fields"])
        assert writes.calls == []
        assert await rows_of(send) == [("jobs.create", "refused", "PyTorchJob", "Bert")]


async def test_an_unknown_field_of_the_body_is_malformed(tmp_path: Any) -> None:
    async with submitting(tmp_path, Creating()) as send:
        status, answer = await send("bob", {**body(), "user": "anna"})
        assert (status, answer["code"]) == (400, "malformed")


async def test_a_name_that_is_taken_is_409(tmp_path: Any) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        assert (await send("bob", body()))[0] == 201
        status, answer = await send("bob", body())
        assert (status, answer["code"]) == (409, "exists")
        assert [each["path"] for each in answer["fields"]] == ["name"]
        tried = (await send("bob", body(), "?dryRun=true"))[1]
        assert [(each["path"], each["rule"]) for each in tried["fields"]] == [("name", "exists")]
        assert tried["verdict"] is None
        assert len(writes.made) == 1


INVALID = InvalidObject(
    "kubernetes",
    'PyTorchJob.kubeflow.org "bert" is invalid',
    causes=(
        ("spec.pytorchReplicaSpecs.Master.template.spec.priorityClassName", "Invalid value"),
        ("spec.of.no.field", "Required value"),
    ),
)


@pytest.mark.parametrize("query", ["", "?dryRun=true"])
async def test_what_the_api_server_refuses_stands_at_its_field(tmp_path: Any, query: str) -> None:
    writes = Creating()
    writes.faults["PyTorchJob"] = INVALID
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", body(), query)
        assert status == (200 if query else 422)
        found = [(each["path"], each["error"].rpartition(": ")[2]) for each in answer["fields"]]
        assert found == [("flags.priority", "Invalid value"), ("", "Required value")]
        assert writes.made == []


async def test_what_the_api_server_forbids_is_forbidden(tmp_path: Any) -> None:
    writes = Creating()
    writes.faults["PyTorchJob"] = Forbidden("kubernetes", "bob cannot create")
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", body())
        assert (status, answer["code"]) == (403, "forbidden")
        tried = (await send("bob", body(), "?dryRun=true"))[1]
        assert tried["fields"][0]["error"] == "bob cannot create"


ELASTIC = {"tensorboard": True, "data": ["claim:/training_logs"]}


@pytest.mark.parametrize("at", ["TrainingJob", "Deployment", "Service"])
async def test_a_failure_half_way_leaves_nothing(tmp_path: Any, at: str) -> None:
    writes = Creating()
    writes.faults[at] = OutsideError("kubernetes", "the connection broke")
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", body("etjob", ELASTIC))
        assert (status, answer["code"]) == (502, "outside-failed")
        assert writes.made == []
        assert {account for _, _, account in writes.calls} == {BOBS}
        assert await rows_of(send) == [("jobs.create", "failed", "TrainingJob", "bert")]


async def test_what_cannot_be_removed_again_is_named(tmp_path: Any) -> None:
    writes = Creating()
    writes.faults["Service"], writes.stuck = INVALID, {"Deployment"}
    async with submitting(tmp_path, writes) as send:
        _, answer = await send("bob", body("etjob", ELASTIC))
        assert (
            "Deployment a-ns/bert-tensorboard was made and could not be removed" in answer["hint"]
        )
        assert [each["kind"] for each in writes.made] == ["Deployment"]


async def test_companions_belong_to_the_job_and_no_preview_shows_its_keys(tmp_path: Any) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        tried = (await send("bob", body("etjob", ELASTIC), "?dryRun=true"))[1]
        [secret] = [
            each for each in yaml.safe_load_all(tried["manifests"]) if each["kind"] == "Secret"
        ]
        assert set(secret["data"].values()) == {"<redacted>"}
        status, answer = await send("bob", body("etjob", ELASTIC))
        assert status == 201, answer
        job, *others = [writes.made[1], writes.made[0], *writes.made[2:]]
        assert job["kind"] == "TrainingJob"
        for each in others:
            [owner] = each["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == ("TrainingJob", "uid-TrainingJob")


async def test_a_kind_that_is_not_served_is_refused_or_replaced(tmp_path: Any) -> None:
    writes = Creating({"mpijobs": ("v2beta1",)})
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", body())
        assert status == 422
        assert [(each["path"], each["rule"]) for each in answer["fields"]] == [
            ("type", "crd-missing")
        ]
        tried = (await send("bob", body("deepspeedjob"), "?dryRun=true"))[1]
        assert tried["valid"] and "a MPIJob is created" in tried["notes"][0]
        status, answer = await send("bob", body("deepspeedjob"))
        assert (status, answer["type"]) == (201, "mpijob")


CRON = {"schedule": "0 22 * * *"}


async def test_a_cron_is_tried_and_created_as_the_user(tmp_path: Any) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        asked = body("cron-tfjob", {**CRON, "gpus": "2"}, name="nightly")
        status, tried = await send("bob", asked, "?dryRun=true")
        assert (status, tried["valid"], tried["verdict"]) == (200, True, None), tried
        assert writes.calls == [("try", "Cron", BOBS)] and writes.made == []
        line = _words(tried["line"])
        cli = create(["cron", "tfjob", *line, "--dry-run"], KeepingCluster(user=BOBS), None)
        assert cli.out == tried["manifests"]
        status, answer = await send("bob", asked)
        assert (status, answer["type"], answer["line"]) == (201, "cron", tried["line"])
        assert answer["created"] == tried["effects"]
        assert [(each["kind"], each["spec"]["schedule"]) for each in writes.made] == [
            ("Cron", "0 22 * * *")
        ]
        assert await rows_of(send) == [("jobs.create", "ok", "Cron", "nightly")]
        status, answer = await send("bob", asked)
        assert (status, answer["code"]) == (409, "exists")
        assert (await send("bob", {**asked, "namespace": "b-ns"}))[0] == 404


async def test_a_cron_that_is_not_served_or_is_wrong_is_refused(tmp_path: Any) -> None:
    writes = Creating({"tfjobs": ("v1",)})
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", body("cron-tfjob", CRON))
        assert status == 422
        assert [(each["path"], each["rule"]) for each in answer["fields"]] == [
            ("type", "crd-missing")
        ]
        status, answer = await send("bob", body("cron-tfjob", {"schedule": "often"}))
        assert [each["path"] for each in answer["fields"]] == ["flags.schedule"]
        assert writes.calls == []
        assert await rows_of(send) == [("jobs.create", "refused", "Cron", "bert")] * 2


SERVING = {
    "custom-serving": {"image": "i", "restful-port": "8080"},
    "tf-serving": {"model-name": "mnist", "model-path": "/m"},
    "triton-serving": {"model-repository": "/m"},
    "kserve": {"model-format": "sklearn"},
}


def serving(type_: str, flags: dict[str, Any] | None = None, **more: Any) -> Any:
    given = {"version": "v1", **SERVING[type_], **(flags or {})}
    return {
        "type": type_,
        "namespace": "a-ns",
        "name": "bert",
        "command": "",
        **more,
        "flags": given,
    }


@pytest.mark.parametrize(
    ("type_", "command", "kinds"),
    [
        ("custom-serving", "custom", ["Deployment", "Service"]),
        ("tf-serving", "tensorflow", ["Deployment", "Service"]),
        ("triton-serving", "triton", ["Deployment", "Service"]),
        ("kserve", "kserve", ["InferenceService"]),
    ],
)
async def test_a_serving_job_is_tried_and_created_as_the_user(
    tmp_path: Any, type_: str, command: str, kinds: list[str]
) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        asked = serving(type_, {"gpus": "2", "replicas": "2"})
        status, tried = await send("bob", asked, "?dryRun=true")
        assert (status, tried["valid"], tried["fields"]) == (200, True, []), tried
        assert writes.calls == [("try", kind, BOBS) for kind in kinds] and writes.made == []
        verdict = tried["verdict"]
        assert (verdict and verdict["state"]) == (None if type_ == "kserve" else "starts")
        line = [*_words(tried["line"]), "--dry-run"]
        cli = create(["serve", command, *line], KeepingCluster(user=BOBS), None)
        assert cli.out == tried["manifests"]
        status, answer = await send("bob", asked)
        assert (status, answer["type"], answer["name"]) == (201, type_, "bert"), answer
        assert answer["created"] == tried["effects"]
        assert writes.calls[len(kinds) :] == [("create", kind, BOBS) for kind in kinds]
        main, *others = writes.made
        for each in others:
            [owner] = each["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == (kinds[0], f"uid-{kinds[0]}")
        assert main["metadata"]["labels"]["servingType"] == type_
        [row] = await rows_of(send)
        assert row == ("jobs.create", "ok", kinds[0], main["metadata"]["name"])
        status, answer = await send("bob", asked)
        assert (status, answer["code"]) == (409, "exists")
        assert (await send("bob", {**asked, "namespace": "b-ns"}))[0] == 404


async def test_the_verdict_on_a_serving_job_counts_all_of_its_pods(tmp_path: Any) -> None:
    async with submitting(tmp_path, Creating()) as send:
        states = {}
        for gpus, replicas in (("2", "2"), ("2", "3"), ("9", "1"), ("1", "0")):
            asked = serving("custom-serving", {"gpus": gpus, "replicas": replicas})
            tried = (await send("bob", asked, "?dryRun=true"))[1]
            states[gpus, replicas] = tried["verdict"]["state"]
        assert states == {
            ("2", "2"): "starts",
            ("2", "3"): "waits",
            ("9", "1"): "never",
            ("1", "0"): "unknown",
        }


async def test_a_serving_job_that_fails_half_way_leaves_nothing(tmp_path: Any) -> None:
    writes = Creating()
    writes.faults["Service"] = OutsideError("kubernetes", "the connection broke")
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", serving("triton-serving"))
        assert (status, answer["code"]) == (502, "outside-failed")
        assert writes.made == []
        [row] = await rows_of(send)
        assert row[:3] == ("jobs.create", "failed", "Deployment")


async def test_a_serving_job_whose_kind_is_not_served_is_refused(tmp_path: Any) -> None:
    writes = Creating({"deployments": ("v1",)})
    async with submitting(tmp_path, writes) as send:
        status, answer = await send("bob", serving("kserve"))
        assert status == 422
        assert [(each["path"], each["rule"]) for each in answer["fields"]] == [
            ("type", "crd-missing")
        ]
        assert "the cluster serves no inferenceservices.serving.kserve.io" in answer["error"]
        assert writes.calls == []


@pytest.mark.parametrize("query", ["", "?dryRun=true"])
async def test_what_is_refused_of_a_deployment_is_no_fault_of_tensorboard(
    tmp_path: Any, query: str
) -> None:
    writes = Creating()
    causes = (
        ("spec.template.spec.containers[0].image", "Required value"),
        ("spec.replicas", "Invalid value"),
        ("spec.template.spec.containers[0].command", "Invalid value"),
    )
    writes.faults["Deployment"] = InvalidObject("kubernetes", "is invalid", causes=causes)
    async with submitting(tmp_path, writes) as send:
        answer = (await send("bob", serving("custom-serving"), query))[1]
        paths = [each["path"] for each in answer["fields"]]
        assert paths == ["flags.image", "flags.replicas", "command"]


@pytest.mark.parametrize(
    ("crons", "is_served"), [(("v1alpha1",), True), ((), False), (("v2",), False)]
)
async def test_a_form_knows_whether_the_cluster_serves_crons(
    tmp_path: Any, crons: tuple[str, ...], is_served: bool
) -> None:
    async with submitting(tmp_path, Creating({"crons": crons})) as send:
        items = (await send("bob", path="/job-types", method="GET"))[1]["items"]
        found = {each["type"]: each["isServed"] for each in items}
        assert found["cron-tfjob"] is is_served and found["pytorchjob"]
        assert not found["kserve"] and not found["custom-serving"]


async def test_the_priority_class_must_exist(tmp_path: Any) -> None:
    writes = Creating()
    async with submitting(tmp_path, writes) as send:
        assert (await send("bob", body(flags={"priority": "high"})))[0] == 201
        assert ("read", "PriorityClass", BOBS) in writes.calls
        status, answer = await send("bob", body(name="b", flags={"priority": "low"}))
        assert (status, answer["fields"][0]["path"]) == (422, "flags.priority")


async def test_forms_name_the_namespaces_of_the_one_who_asks(tmp_path: Any) -> None:
    async with submitting(tmp_path, Creating()) as send:
        own = (await send("bob", path="/job-types", method="GET"))[1]
        every = (await send("anna", path="/job-types", method="GET"))[1]
        assert own["namespaces"] == ["a-ns"]
        assert every["namespaces"] == ["a-ns", "b-ns", "default"]
        assert [each["type"] for each in own["items"]] == [form.type for form in FORMS.forms()]


async def test_a_console_without_forms_submits_nothing(tmp_path: Any) -> None:
    async with submitting(tmp_path, Creating(), forms=None) as send:
        for answer in (
            await send("bob", body()),
            await send("bob", path="/job-types", method="GET"),
        ):
            assert (answer[0], answer[1]["code"]) == (404, "not-found")


class OneManifest:
    """`ports.JobFiles` that has one job. `asked`: as which accounts it was read."""

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifest_of, self.asked = manifest, list[str]()

    async def manifest(self, job: Job, account: str) -> dict[str, Any]:
        self.asked.append(account)
        return self.manifest_of


async def test_a_job_is_cloned_as_the_user_and_none_of_another_team(tmp_path: Any) -> None:
    job = FORMS.read(convert(body(flags={"gpus": "2"}), JobSubmission), is_trial=True)
    assert isinstance(job, WrittenJob)
    [manifest] = FORMS.objects(job, Served(("v1",), None, BOBS))
    files = OneManifest(manifest)
    jobs = [replace(training_job("bert"), namespace=name) for name in ("a-ns", "b-ns")]
    async with submitting(tmp_path, Creating(), jobs=jobs, files=files) as send:
        path = "/jobs/a-ns/pytorchjob/bert/clone"
        status, answer = await send("bob", path=path, method="GET")
        assert (status, answer["lost"], files.asked) == (200, [], [BOBS])
        assert answer["submission"] == {**body(flags={"gpus": "2"}), "name": "bert-2"}
        status, answer = await send("bob", path=path.replace("a-ns", "b-ns"), method="GET")
        assert (status, answer["code"], files.asked) == (404, "not-found", [BOBS])
