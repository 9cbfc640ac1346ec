"""Components through the console: who may, what is checked, what is recorded, what starts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import structs
from tests.apps.audited_console import AuditedConsole, two_administrators
from tests.apps.running_console import Page, console
from tests.apps.still_components import StillComponents
from tests.console.clusters import cluster, gpu_node
from tests.console.data_parts import MemoryObjects, MemoryRecords
from tests.console.sign_in_parts import Parts
from tests.console.worlds import still_world
from tests.rules.components.plans import deployment, facts, new, there, written

from fairlead.apps.console_server import ConsoleSettings
from fairlead.edge.store.address import store_address
from fairlead.edge.store.look import StoreLooks
from fairlead.edge.store.opened import open_store
from fairlead.errors import Forbidden, OutsideError, UserError
from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.installation import Parts as InstalledParts
from fairlead.model.installed.component_facts import (
    ComponentFacts,
    InstallationFact,
    ProgramWorkload,
)
from fairlead.model.installed.finding import Finding, State
from fairlead.model.installed.planned_installation import PlannedInstallation
from fairlead.model.operations.operation import AfterStep, ApplyStep, HelmRelease, OperationState
from fairlead.model.records.audit import AuditFilter
from fairlead.model.records.rows import StoreLook
from fairlead.rules.installation.comparable import content_version
from fairlead.wire.helm.failures import BAD_VALUES

YAML = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: mpi-operator}\n"
SECRET = "hunter2-hunter2"
DEPLOY = {"component": "mpi-operator", "do": "deploy", "manifests": YAML}


class StillInstallation:
    """`ports.InstallationPlans` of what a test gives it. `failure`: what the installer refuses."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, bool], dict[str, Any]]] = []
        self.failure: UserError | None = None

    def plan(self, parts: Mapping[str, bool], values: Mapping[str, Any]) -> PlannedInstallation:
        self.asked.append((dict(parts), dict(values)))
        if self.failure is not None:
            raise self.failure
        record = {"metadata": {"name": "fairlead-installation", "namespace": "fairlead-system"}}
        record |= {"apiVersion": "v1", "kind": "ConfigMap"}
        return PlannedInstallation(
            tried=(new(deployment(name="fairlead-quota-controller")),),
            removed=(),
            writing=record,
            complete=record,
            manager="fairlead-install",
            findings=(Finding("nodes", State.FAIL, "a node is not ready"),),
        )

    def console_secret(self) -> ObjectRef:
        return ObjectRef("v1", "Secret", "fairlead-console", "fairlead-system", plural="secrets")


class GoodStores:
    """`ports.StoreQuestions` of which one database answers."""

    async def look(self, url: str, password: str) -> StoreLook:
        is_good = password == SECRET
        return StoreLook(is_good, f"`{url}` answers" if is_good else "wrong password", "look at it")


class Sent(AuditedConsole):
    """A console with Anna and Olga, administrators, and Bob, a researcher."""

    def __init__(self, page: Page, store: Any, parts: dict[str, Any]) -> None:
        super().__init__(page, store)
        self.components: StillComponents = parts["components"]
        self.records: MemoryRecords = parts["records"]
        self.objects: MemoryObjects = parts["objects"]
        self.installation: StillInstallation = parts["installation"]


@asynccontextmanager
async def sent(tmp_path: Any, stores: Any = None) -> AsyncIterator[Sent]:
    parts: dict[str, Any] = {
        "components": StillComponents(),
        "records": MemoryRecords(),
        "objects": MemoryObjects(),
        "installation": StillInstallation(),
    }
    store = await open_store(store_address(f"sqlite:///{tmp_path}/store.sqlite"))
    world = structs.replace(
        still_world(cluster([gpu_node()])),
        components=lambda: parts["components"],
        operations=parts["records"],
        operated=parts["objects"],
        stores=stores or StoreLooks(),
        installation=parts["installation"],
    )
    settings = ConsoleSettings(charts="oci://charts.example/all")
    async with console(
        world, settings=settings, desk=Parts(two_administrators()).desk(records=store)
    ) as page:
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
        charts = {id: row["chart"] for id, row in rows.items() if row["chart"]}
        assert charts == {
            "fluid": "oci://charts.example/all/fluid",
            "prometheus": "oci://charts.example/all/kube-prometheus-stack",
            "prometheus-adapter": "oci://charts.example/all/prometheus-adapter",
        }
        assert body["facets"]["group"][0] == "Scheduling"
        _, body = await send("anna", "GET", "/components?group=Workflow")
        assert [row["id"] for row in body["items"]] == ["training-operator", "mpi-operator"]
        _, body = await send("anna", "GET", "/components/kueue")
        assert body["links"] == ["https://kueue.example/"]
        _, body = await send("anna", "GET", "/components/mpi-operator")
        assert body["links"] == []


async def test_a_researcher_gets_nothing_of_it(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        asked = [
            ("GET", "/components", None),
            ("GET", "/components/fluid", None),
            ("POST", "/plans", DEPLOY),
            ("POST", "/plans?dryRun=true", DEPLOY),
            ("POST", "/plans/together", {"components": [DEPLOY]}),
            ("POST", "/components/console/store-password", {"url": "postgresql://u@h/d"}),
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
        assert send.records.by_id[plan["planId"]].seen == {
            "Deployment mpi/mpi-operator": content_version(found)
        }
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


async def test_values_of_the_form_are_values_of_the_chart(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        tolerations = '[{"operator": "Exists"}]'
        settings = {"dataset.replicas": "2", "csi.tolerations": tolerations, "imagePrefix": " "}
        order = {
            "component": "fluid",
            "chart": "oci://registry.example/fluid",
            "values": "dataset: {replicas: 1, other: x}",
            "settings": settings,
        }
        status, body = await send("anna", "POST", "/plans", order)
        assert status == 201, body
        assert body["line"].endswith(
            f"--values values.yaml --set dataset.replicas=2 --set 'csi.tolerations={tolerations}'"
        )
        values = send.components.asked[-1].values
        assert values["dataset"] == {"replicas": 2, "other": "x"}
        assert values["csi"] == {"tolerations": [{"operator": "Exists"}]}
        order["settings"] = {"dataset.replicas": "many", "csi.tolerations": "a: b", "x.y": "1"}
        _, body = await send("anna", "POST", "/plans", order)
        assert {each["path"]: each["error"] for each in body["fields"]} == {
            "settings.dataset.replicas": "value `dataset.replicas` is `many`: give a whole number",
            "settings.csi.tolerations": "value `csi.tolerations` is `{'a': 'b'}`: give a list",
            "settings.x.y": "`fluid` has no value `x.y`",
        }
        order |= {"settings": {}, "values": "dataset: {replicas: many}"}
        _, body = await send("anna", "POST", "/plans?dryRun=true", order)
        (fault,) = [each for each in body["fields"] if each["path"]]
        assert fault["path"] == "values.dataset.replicas"
        send.components.failure = OutsideError("helm", "at '/a': got string", BAD_VALUES)
        _, body = await send("anna", "POST", "/plans", order)
        assert body["fields"][0]["path"] == "values"
        _, body = await send("anna", "GET", "/components/fluid")
        fields = {each["name"]: each["type"] for each in body["row"]["fields"]}
        assert fields["csi.tolerations"] == "list"


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


OTHER = {**DEPLOY, "component": "training-operator"}
BOTH = {"components": [OTHER, DEPLOY]}


async def test_several_are_one_plan_and_start_by_one_click(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        same = {"components": [{**each, "namespace": "mpi"} for each in BOTH["components"]]}
        status, body = await send("anna", "POST", "/plans/together?dryRun=true", same)
        assert (status, body["planId"]) == (200, "")
        # one manifest cannot be of both
        assert [each["rule"] for each in body["fields"]] == ["together"]
        assert send.records.by_id == {}
        order = {"components": [OTHER, {**DEPLOY, "manifests": YAML.replace("mpi-", "my-")}]}
        status, plan = await send("anna", "POST", "/plans/together", order)
        assert status == 201, plan
        assert [each["components"] for each in plan["items"]] == [
            *(["training-operator"], ["mpi-operator"]),
        ]
        assert plan["line"].startswith(
            "fairlead component deploy training-operator mpi-operator --manifests "
            "training-operator=training-operator-manifests.yaml"
        )
        last = send.records.by_id[plan["planId"]]
        (first,) = [each for each in send.records.by_id.values() if each.id != last.id]
        assert last.subject == "component/mpi-operator"
        assert last.steps[0].work == AfterStep(first.id, first.subject)
        assert {each.state for each in (first, last)} == {OperationState.PLANNED}
        assert (await send("olga", "POST", "/operations", {"planId": last.id}))[0] == 404
        status, begun = await send("anna", "POST", "/operations", {"planId": last.id})
        assert (status, begun) == (202, {"operation": last.id})
        assert {each.state for each in send.records.by_id.values()} == {OperationState.RUNNING}
        _, body = await send("anna", "GET", "/components")
        states = {each["id"]: each["state"] for each in body["items"]}
        assert (states["mpi-operator"], states["training-operator"]) == ("Installing",) * 2


async def test_a_plan_of_several_is_stale_if_one_of_them_is(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        order = {"components": [OTHER, {**DEPLOY, "manifests": YAML.replace("mpi-", "my-")}]}
        _, plan = await send("anna", "POST", "/plans/together", order)
        first = next(each for each in send.records.by_id.values() if each.id != plan["planId"])
        (title,) = first.seen
        kind, _, place = title.partition(" ")
        namespace, _, name = place.partition("/")
        meta = {"name": name, "namespace": namespace, "resourceVersion": "9"}
        made = {"apiVersion": "apps/v1", "kind": kind, "metadata": meta}
        send.objects.objects[title] = made
        status, body = await send("anna", "POST", "/operations", {"planId": plan["planId"]})
        assert (status, body["code"]) == (409, "blocked")
        assert "changed since" in body["error"]
        assert {each.state for each in send.records.by_id.values()} == {OperationState.PLANNED}


async def test_bad_orders_of_several_are_one_422(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        path = "/plans/together"
        status, body = await send("anna", "POST", path, {"components": []})
        assert (status, body["fields"][0]["path"]) == (422, "components")
        status, body = await send("anna", "POST", path, {"components": [DEPLOY, DEPLOY]})
        assert (status, body["fields"][0]["error"]) == (
            *(422, "`mpi-operator` is named twice: name each component once"),
        )
        bad = {"component": "fluid", "do": "remove", "chart": "/etc/passwd"}
        _, body = await send("anna", "POST", path, {"components": [bad]})
        assert [each["path"] for each in body["fields"]] == ["fluid.chart", "fluid.do"]
        assert (await send("anna", "POST", path, {"components": [{"component": "x"}]}))[0] == 404


def with_installation(send: Sent, **more: Any) -> None:
    parts = InstalledParts(quota=False, people=False, console=False)
    installed = InstallationFact("0.1.0", parts, "fairlead-system", **more)
    send.components.known = ComponentFacts(program="0.1.0", has_helm=True, installation=installed)


async def test_a_part_is_an_upgrade_of_the_installation(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        with_installation(send)
        order = {"component": "quota", "do": "deploy", "values": "replicas: 2\n"}
        _, body = await send("anna", "POST", "/plans?dryRun=true", order)
        assert (body["valid"], body["line"]) == (
            *(True, "fairlead component deploy quota --values values.yaml"),
        )
        states = {each["check"]: each["state"] for each in body["checks"]}
        assert states == {"depends": "ok", "conflicts": "ok", "nodes": "warn"}
        status, plan = await send("anna", "POST", "/plans", order)
        assert status == 201
        assert send.installation.asked[-1] == ({"quota": True}, {"replicas": 2})
        record = send.records.by_id[plan["planId"]]
        assert record.subject == "installation/quota"
        works = [each.work for each in record.steps]
        applied = [each for each in works if isinstance(each, ApplyStep)]
        assert {each.manager for each in applied} == {"fairlead-install"}
        assert (await send("anna", "POST", "/operations", {"planId": record.id}))[0] == 202
        # the installation is one: no other part changes meanwhile
        other = {"component": "people", "do": "deploy"}
        status, body = await send("anna", "POST", "/plans", other)
        assert (status, body["code"]) == (409, "blocked")
        _, body = await send("anna", "GET", "/components/quota")
        assert (body["row"]["state"], body["row"]["operation"]) == ("Installing", record.id)
        assert [each["id"] for each in body["history"]] == [record.id]
        _, body = await send("anna", "GET", "/components/people")
        assert (body["row"]["state"], body["row"]["operation"]) == ("NotInstalled", record.id)


async def test_a_part_is_not_removed_under_pods_on_shared_gpus(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        with_installation(send)
        send.components.sharing = ("Pod team/bert-0",)
        order = {"component": "gpu-sharing", "do": "remove"}
        status, body = await send("anna", "POST", "/plans", order)
        assert (status, body["fields"][0]["rule"]) == (422, "shared-pods")
        assert "1 pod on shared GPUs: Pod team/bert-0" in body["fields"][0]["error"]
        send.components.sharing = ()
        assert (await send("anna", "POST", "/plans", order))[0] == 201
        send.components.sharing = ("Pod team/bert-0",)
        order["component"] = "cluster-exporter"
        assert (await send("anna", "POST", "/plans", order))[0] == 201


async def test_what_the_installer_refuses_is_a_failing_check(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        with_installation(send)
        send.installation.failure = UserError("2 objects are refused", "use an account")
        order = {"component": "quota", "do": "deploy"}
        status, body = await send("anna", "POST", "/plans", order)
        assert status == 422
        assert body["fields"][0]["rule"] == "installation"
        assert body["fields"][0]["error"] == "2 objects are refused: use an account"
        order["values"] = f"store: {{url: 'postgresql://u:{SECRET}@h/d'}}"
        status, body = await send("anna", "POST", "/plans", order)
        assert (status, body["fields"][0]["rule"]) == (422, "config-complete")
        assert SECRET not in f"{body}{send.records.by_id}{await send.audit()}"


async def test_parts_are_one_operation_before_the_others(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        with_installation(send)
        order = {"components": [DEPLOY, {"component": "people"}, {"component": "quota"}]}
        status, plan = await send("anna", "POST", "/plans/together", order)
        assert status == 201
        assert [each["components"] for each in plan["items"]] == [
            *(["people", "quota"], ["mpi-operator"]),
        ]
        assert send.installation.asked[-1][0] == {"people": True, "quota": True}


async def test_a_part_of_a_helm_release_is_written_by_its_command(tmp_path: Any) -> None:
    async with sent(tmp_path) as send:
        with_installation(send, release="fairlead")
        _, body = await send("anna", "POST", "/plans?dryRun=true", {"component": "quota"})
        assert not body["valid"] and body["line"] == "fairlead component deploy quota"
        together = {"components": [DEPLOY, {"component": "quota"}]}
        status, body = await send("anna", "POST", "/plans/together", together)
        assert (status, body["code"]) == (409, "blocked")
        assert body["hint"] == "run `fairlead component deploy quota`"


async def test_a_password_goes_into_the_secret_and_nowhere_else(tmp_path: Any) -> None:
    path = "/components/console/store-password"
    async with sent(tmp_path, GoodStores()) as send:
        with_installation(send)
        given = {"url": "postgresql://fairlead@db:5432/fairlead", "password": "wrong-wrong"}
        status, body = await send("anna", "POST", path, given)
        assert (status, body["fields"][0]["path"]) == (422, "url")
        assert send.objects.objects == {}
        given["password"] = SECRET
        status, body = await send("anna", "POST", path, given)
        assert (status, body["ok"]) == (200, True)
        (secret,) = send.objects.objects.values()
        assert secret["metadata"] == {"name": "fairlead-console", "namespace": "fairlead-system"}
        assert secret["stringData"] == {"store-password": SECRET}
        rows = [each async for each in send.store.audit_rows(AuditFilter())]
        assert [each.action for each in rows] == ["components.store"] * 2
        assert SECRET not in f"{body}{rows}{send.records.by_id}{send.objects.calls}"
        assert "wrong-wrong" not in f"{rows}"


async def test_a_refused_secret_does_not_repeat_the_password(tmp_path: Any) -> None:
    async with sent(tmp_path, GoodStores()) as send:
        with_installation(send)

        async def refuse(*_words: Any, **_named: Any) -> Manifest:
            raise Forbidden("kubernetes", f"denied: {SECRET}", f"not {SECRET}")

        send.objects.apply = refuse  # type: ignore[method-assign]
        given = {"url": "postgresql://fairlead@db:5432/fairlead", "password": SECRET}
        status, body = await send("anna", "POST", "/components/console/store-password", given)
        assert status == 403
        assert "denied" in str(body)
        assert SECRET not in str(body)
