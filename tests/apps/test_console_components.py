"""Components through the console: who may, what is checked, what is recorded, what starts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec import structs
from tests.console.clusters import cluster, gpu_node
from tests.console.data_parts import MemoryObjects, MemoryRecords
from tests.console.sign_in_parts import ANNA, BOB, FakeSignInApi, Parts, group, person
from tests.console.worlds import still_world
from tests.rules.components.plans import definition, deployment, facts, new, there, written

from fairlead.edge.store.address import store_address
from fairlead.edge.store.look import StoreLooks
from fairlead.edge.store.opened import open_store
from fairlead.errors import OutsideError
from fairlead.model.access import Identity
from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.installed.component_facts import (
    ComponentFacts,
    PlanFacts,
    ProgramWorkload,
    WantedComponent,
)
from fairlead.model.operations.component import Component
from fairlead.model.operations.operation import (
    HelmRelease,
    HelmStep,
    OperationState,
)
from fairlead.model.people.rows import UserRole
from fairlead.model.records.audit import AuditFilter

from .running_console import Page, console

OLGA = person("olga", role=UserRole.ADMIN)
YAML = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: mpi-operator}\n"
SECRET = "hunter2-hunter2"
DEPLOY = {"component": "mpi-operator", "do": "deploy", "manifests": YAML}


class StillComponents:
    """`ports.ComponentQuestions` of what a test gives it. `failure`: what a chart raises."""

    def __init__(self) -> None:
        self.known = ComponentFacts(program="0.1.0", has_helm=True)
        self.plan: PlanFacts = facts()
        self.before: dict[tuple[str, str, str], Manifest] = {}
        self.failure: Exception | None = None
        self.asked: list[WantedComponent] = []

    def facts(self, components: Sequence[Component]) -> ComponentFacts:
        return self.known

    def home(self) -> str:
        return "fairlead-system"

    def stand_in(self, id: str) -> tuple[Manifest, ...]:
        return (definition("datasets.data.fluid.io"),) if id in self.known.stand_ins else ()

    def render(self, step: HelmStep) -> tuple[Manifest, ...]:
        if self.failure is not None:
            raise self.failure
        return (deployment(name="dataset-controller"),)

    def placed(self, manifests: Sequence[Manifest], namespace: str) -> tuple[Manifest, ...]:
        return tuple(
            {**each, "metadata": {"namespace": namespace, **each["metadata"]}} for each in manifests
        )

    def found(self, targets: Sequence[ObjectRef]) -> list[Manifest | None]:
        return [None for _ in targets]

    def plan_facts(self, wanted: WantedComponent) -> PlanFacts:
        self.asked.append(wanted)
        tried = self.plan.tried or tuple(map(new, wanted.objects))
        return structs.replace(self.plan, tried=tried, has_helm=self.known.has_helm)


class Sent:
    """A console with Anna and Olga, administrators, and Bob, a researcher."""

    def __init__(self, page: Page, store: Any, parts: dict[str, Any]) -> None:
        self.page, self.store = page, store
        self.components: StillComponents = parts["components"]
        self.records: MemoryRecords = parts["records"]
        self.objects: MemoryObjects = parts["objects"]

    async def __call__(self, who: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return await self.page.ask_as(who, method, path, body)

    async def audit(self) -> list[tuple[str, str, str]]:
        return [
            (each.action, str(each.result), f"{each.target.kind} {each.target.name}")
            async for each in self.store.audit_rows(AuditFilter())
        ]


@asynccontextmanager
async def sent(tmp_path: Any) -> AsyncIterator[Sent]:
    parts: dict[str, Any] = {
        "components": StillComponents(),
        "records": MemoryRecords(),
        "objects": MemoryObjects(),
    }
    api = FakeSignInApi((ANNA, OLGA, BOB), (group("a"),))
    api.owners["token-of-olga"] = Identity("system:serviceaccount:kube-ai:olga", "uid-olga")
    store = await open_store(store_address(f"sqlite:///{tmp_path}/store.sqlite"))
    world = structs.replace(
        still_world(cluster([gpu_node()])),
        components=lambda: parts["components"],
        operations=parts["records"],
        stores=StoreLooks(),
    )
    async with console(world, desk=Parts(api).desk(records=store)) as page:
        yield Sent(page, store, parts)
    await store.close()


async def test_the_list_has_every_component_in_the_order_of_the_groups(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        send.components.known = ComponentFacts(
            program="0.1.0",
            has_helm=True,
            workloads=(ProgramWorkload("Deployment", "kueue-system", "kueue-controller-manager"),),
            releases=(HelmRelease("fluid", "fluid-system", "failed", 1, "fluid", "1.0.7"),),
        )
        status, body = await send("anna", "GET", "/components")
        rows = {row["id"]: row for row in body["items"]}
        assert (status, len(rows)) == (200, 14)
        assert list(rows)[:: len(rows) - 1] == ["gpu-sharing", "mpi-operator"]
        assert (rows["cli"]["state"], rows["cli"]["isRequired"]) == ("Ready", True)
        assert (rows["kueue"]["state"], rows["kueue"]["source"]) == ("Foreign", "")
        assert (rows["fluid"]["state"], rows["fluid"]["source"]) == ("Foreign", "chart")
        assert (rows["quota"]["source"], rows["mpi-operator"]["source"]) == ("command", "manifests")
        assert rows["fluid"]["titleZh"] == "Fluid 数据加速"
        assert body["facets"]["group"][0] == "Scheduling"
        _, body = await send("anna", "GET", "/components?group=Workflow")
        assert [row["id"] for row in body["items"]] == ["training-operator", "mpi-operator"]


async def test_a_researcher_gets_nothing_of_it(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        asked = [
            ("GET", "/components", None),
            ("GET", "/components/fluid", None),
            ("POST", "/plans", DEPLOY),
            ("POST", "/plans?dryRun=true", DEPLOY),
            ("POST", "/components/console/store-check", {"url": "postgresql://u@h/d"}),
        ]
        for method, path, body in asked:
            status, answer = await send("bob", method, path, body)
            assert (status, answer["code"]) == (403, "forbidden"), path
        assert send.records.by_id == {} and send.components.asked == []


async def test_a_preview_has_checks_and_changes_and_records_nothing(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        status, body = await send("anna", "POST", "/plans?dryRun=true", DEPLOY)
        assert (status, body["valid"], body["planId"]) == (200, True, "")
        assert {each["check"] for each in body["checks"]} >= {"permissions", "crd-owner", "dry-run"}
        assert [(each["do"], each["kind"], each["name"]) for each in body["changes"]] == [
            ("create", "Deployment", "mpi-operator")
        ]
        assert body["line"] == "fairlead component deploy mpi-operator --manifests manifests.yaml"
        assert send.records.by_id == {} and await send.audit() == []


async def test_a_plan_starts_once_for_its_maker_alone(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        status, plan = await send("anna", "POST", "/plans", DEPLOY)
        assert status == 201
        record = send.records.by_id[plan["planId"]]
        assert (record.state, record.created_by) == (OperationState.PLANNED, "anna")
        assert (record.subject, record.kind) == ("component/mpi-operator", "deploy")
        order = {"planId": plan["planId"]}
        assert (await send("olga", "POST", "/operations", order))[0] == 404
        assert (await send("bob", "POST", "/operations", order))[0] == 403
        status, begun = await send("anna", "POST", "/operations", order)
        assert (status, begun) == (202, {"operation": plan["planId"]})
        assert send.records.by_id[plan["planId"]].state is OperationState.RUNNING
        assert (await send("anna", "POST", "/operations", order))[0] == 409
        status, body = await send("anna", "POST", "/plans", DEPLOY)
        assert (status, body["code"]) == (409, "blocked")
        assert body["error"] == f"operation `{plan['planId']}` is at work on `mpi-operator`"
        _, body = await send("anna", "GET", "/components/mpi-operator")
        assert (body["row"]["state"], body["row"]["operation"]) == ("Installing", plan["planId"])
        assert [each["id"] for each in body["history"]] == [plan["planId"]]
        assert ("plans.create", "ok", "Component mpi-operator") in await send.audit()


async def test_a_plan_of_objects_that_changed_since_is_stale(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        found = written(deployment())
        send.components.plan = facts(there(deployment("mpi:2"), found=found))
        send.components.known = structs.replace(send.components.known)
        status, plan = await send("anna", "POST", "/plans", DEPLOY)
        assert status == 201
        assert send.records.by_id[plan["planId"]].seen == {"Deployment mpi/mpi-operator": "7"}
        status, body = await send("anna", "POST", "/operations", {"planId": plan["planId"]})
        assert (status, body["code"]) == (409, "blocked")
        assert "changed since" in body["error"]


async def test_a_failing_check_is_a_422_with_its_fix_and_no_plan(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        send.components.plan = facts(denied=("deployments.apps in mpi",))
        status, body = await send("anna", "POST", "/plans", DEPLOY)
        assert (status, body["code"]) == (422, "invalid")
        (fault,) = body["fields"]
        assert (
            fault["rule"] == "permissions" and "use an account with these rights" in fault["error"]
        )
        assert send.records.by_id == {}
        assert await send.audit() == [("plans.create", "refused", "Component mpi-operator")]


async def test_a_secret_in_values_is_in_no_record_audit_row_or_answer(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        order = {
            "component": "fluid",
            "chart": "oci://registry.example/fluid",
            "values": f"db:\n  password: {SECRET}\n",
        }
        status, body = await send("anna", "POST", "/plans", order)
        assert status == 422 and {each["rule"] for each in body["fields"]} == {"config-complete"}
        rows = [each async for each in send.store.audit_rows(AuditFilter())]
        assert SECRET not in f"{body}{rows}{send.records.by_id}"


async def test_all_unreadable_fields_are_one_422(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        order = {
            "component": "fluid",
            "do": "burn",
            "chart": "/etc/passwd",
            "version": "new",
            "namespace": "A b",
            "values": "a: [",
            "manifests": "a: [",
        }
        for query in ("", "?dryRun=true"):
            _, body = await send("anna", "POST", f"/plans{query}", order)
            paths = ["do", "chart", "version", "namespace", "values", "manifests"]
            assert [each["path"] for each in body["fields"]] == paths
        status, body = await send("anna", "POST", "/plans", {"component": "flud"})
        assert (status, body["hint"]) == (404, "did you mean `fluid`?")


async def test_a_chart_that_helm_cannot_read_is_a_fault_of_its_field(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        send.components.failure = OutsideError("helm", "no such chart", "check the address")
        order = {"component": "fluid", "chart": "oci://registry.example/fluid"}
        status, body = await send("anna", "POST", "/plans", order)
        assert (status, body["fields"][0]["path"]) == (422, "chart")
        send.components.failure = OutsideError("kubernetes", "away")
        assert (await send("anna", "POST", "/plans", order))[0] == 502


async def test_without_helm_the_check_names_the_command(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        send.components.known = ComponentFacts(program="0.1.0", has_helm=False)
        send.components.failure = AssertionError("no chart is read")
        order = {"component": "fluid", "chart": "oci://registry.example/fluid"}
        _, body = await send("anna", "POST", "/plans?dryRun=true", order)
        (check,) = (each for each in body["checks"] if each["check"] == "helm")
        assert check["state"] == "fail" and "helm upgrade --install fluid" in check["mend"]
        _, body = await send("anna", "GET", "/components")
        assert [each["code"] for each in body["warnings"]] == ["no-helm"]


async def test_a_part_of_the_installation_is_written_by_its_command(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        order = {"component": "console", "do": "deploy"}
        _, body = await send("anna", "POST", "/plans?dryRun=true", order)
        assert (body["valid"], body["line"]) == (False, "fairlead component deploy console")
        assert [each["check"] for each in body["checks"]] == ["depends", "conflicts"]
        status, body = await send("anna", "POST", "/plans", order)
        assert (status, body["code"]) == (409, "blocked")


async def test_a_component_of_another_program_is_never_planned(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        seen = ProgramWorkload("Deployment", "mpi", "mpi-operator")
        send.components.known = ComponentFacts(program="0.1.0", workloads=(seen,))
        for do in ("deploy", "upgrade", "remove"):
            status, _ = await send("anna", "POST", "/plans", {**DEPLOY, "do": do})
            assert status in (409, 422), do
        assert send.records.by_id == {}


async def test_a_database_is_checked_and_its_password_kept_nowhere(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        path = "/components/console/store-check"
        given = {"url": "postgresql://fairlead@127.0.0.1:1/fairlead", "password": SECRET}
        status, body = await send("anna", "POST", path, given)
        assert (status, body["ok"], body["settings"]) == (200, False, [])
        assert "postgresql://fairlead@127.0.0.1:1/fairlead" in body["sentence"]
        assert SECRET not in str(body) and await send.audit() == []
        inside = {"url": f"postgresql://fairlead:{SECRET}@h/d", "password": ""}
        _, body = await send("anna", "POST", path, inside)
        assert not body["ok"] and SECRET not in str(body)
        _, body = await send("anna", "POST", path, {"url": "sqlite:///tmp/x"})
        assert not body["ok"] and "built-in" in body["sentence"]
