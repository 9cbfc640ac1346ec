"""Parts of Fairlead's installation by the console, on a real API server where the administrator
has granted it: the same objects as by `fairlead upgrade`; a console is killed in the middle; the
console itself with a real PostgreSQL. KWOK plays the node, so no program
of a part runs in its pod.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts.api_client import ApiClient
from tests.kube.addresses import free_port
from tests.kube.console_line import Administrator
from tests.kube.console_operations import carried_out, finished, ready_component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file, webhook_process
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.objects import cpu_node
from tests.kube.quota_line import SYSTEM
from tests.kube.servers import FAIRLEAD, Server, environment, run_fairlead, running
from tests.stores.database_servers import Postgres, is_installed
from tests.waiting import wait_until

from fairlead.model.operations.operation import INSTALLATION
from fairlead.settings import SIGN_IN_KEY_SECRET
from fairlead.wire.operations.record import lease_name

ACCOUNT = "page"
"""Of the console, to which the administrator has granted all rights."""
OFF = ("console", "quota", "people", "nodeAgent", "gpuSharing", "gpuExporter")
INVENTORY = f"/api/v1/namespaces/{SYSTEM}/configmaps/fairlead-installation"
SECRET = f"/api/v1/namespaces/{SYSTEM}/secrets/fairlead-console"


pytestmark = pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as plane:
        node = cpu_node("cpu-1")
        node["metadata"]["labels"]["kubernetes.io/os"] = "linux"
        plane.admin.create([node])
        users = [each for each in of_file("people.yaml") if "Definition" in each["kind"]]
        plane.admin.apply(users)  # by which administrators sign in
        settings = [word for part in OFF for word in ("--set", f"parts.{part}=false")]
        run_fairlead(plane.kubeconfig, "install", *settings, "--set", "replicas=1", "--wait", "60")
        plane.admin.run("create", "serviceaccount", ACCOUNT, "-n", SYSTEM)
        plane.admin.run(
            *("create", "clusterrolebinding", "fairlead-console-components"),
            *("--clusterrole=cluster-admin", f"--serviceaccount={SYSTEM}:{ACCOUNT}"),
        )
        yield plane


@pytest.fixture(scope="module")
def own(cluster: ControlPlane) -> Administrator:
    return Administrator(cluster.admin)


@pytest.fixture(scope="module")
def api(cluster: ControlPlane) -> ApiClient:
    return ApiClient("real", cluster.kubeconfig, keeps_connections=True)


def console(cluster: ControlPlane, log: str) -> AbstractContextManager[Server]:
    token = cluster.admin.run("create", "token", ACCOUNT, "-n", SYSTEM, "--duration=4h").strip()
    path = write_kubeconfig(
        cluster.folder / f"{log}.kubeconfig", cluster.server, cluster.authority, token_user(token)
    )
    flags = (
        *(f"--kubeconfig={path}", "--gpu-source=none", "--sign-in=on"),
        f"--sign-in-key-secret={SYSTEM}/{SIGN_IN_KEY_SECRET}",
        f"--store=sqlite:///{cluster.folder / log}.sqlite",
    )
    return running("console", *flags, log=Path(cluster.folder / f"{log}.log"))


def parts(api: ApiClient) -> tuple[dict[str, Any], str]:
    """The values `parts` of the inventory that are not the default, and its state."""
    data = api.get(INVENTORY).body["data"]
    return yaml.safe_load(data["values"])["parts"], data["state"]


def check_as_by_command(cluster: ControlPlane) -> None:
    """The command finds nothing to change, so both write the same objects."""
    printed = run_fairlead(cluster.kubeconfig, "upgrade", "--dry-run")
    *others, last = printed.splitlines()
    assert last.endswith("objects do not change")
    assert all(each.endswith("it is used as it is") for each in others), printed


def test_a_part_is_deployed_by_the_next_console_if_the_first_is_killed(
    cluster: ControlPlane, own: Administrator, api: ApiClient
) -> None:
    order = {"component": "gpu-exporter", "do": "deploy"}
    with console(cluster, "first") as first:
        status, plan = own.send(first, "POST", "/plans", order)
        assert status == 201, plan
        assert parts(api)[0]["gpuExporter"] is False, "a plan writes nothing"
        kinds = {each["kind"] for each in plan["changes"]}
        assert {"DaemonSet", "NetworkPolicy"} <= kinds
        id = plan["planId"]
        assert own.send(first, "POST", "/operations", {"planId": id})[0] == 202
        first.component.kill()  # at whatever step it is
    with console(cluster, "second") as second:
        wait_until("the operation has ended", lambda: own.state(second, id) != "Running")
        _, found = own.send(second, "GET", f"/operations/{id}")
        assert found["row"]["state"] == "Succeeded", found["row"]["message"]
        ready_component(own, second, "gpu-exporter")
        values, state = parts(api)
        assert (values.get("gpuExporter", True), state) == (True, "complete")
        check_as_by_command(cluster)

        carried_out(own, second, {"component": "gpu-exporter", "do": "remove"})
        assert parts(api) == ({**values, "gpuExporter": False}, "complete")
        check_as_by_command(cluster)


def test_the_console_finishes_what_a_killed_command_began(
    cluster: ControlPlane, own: Administrator, api: ApiClient
) -> None:
    words = ["upgrade", "--set", "parts.gpuExporter=true", f"--kubeconfig={cluster.kubeconfig}"]
    with subprocess.Popen(
        [*FAIRLEAD, *words], env=environment(), stdout=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        assert command.stdout.readline().startswith("[1/")
        command.kill()
    assert parts(api)[1] == "writing"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
    name = lease_name(INSTALLATION)
    assert api.get(f"{leases}/{name}").body["spec"]["holderIdentity"], "it was killed in the middle"
    api.delete(f"{leases}/{name}")  # as 30 s after the death of its holder
    with console(cluster, "after") as page:
        carried_out(own, page, {"component": "gpu-exporter", "do": "upgrade"})
        ready_component(own, page, "gpu-exporter")
        values, state = parts(api)
        assert (values.get("gpuExporter", True), state) == (True, "complete")
        check_as_by_command(cluster)


@pytest.mark.skipif(not is_installed("postgresql"), reason="no PostgreSQL")
def test_the_console_with_an_external_database(
    cluster: ControlPlane, own: Administrator, api: ApiClient
) -> None:
    """The password is in the Secret and in nothing else."""
    server = Postgres()
    try:
        address = server.new_database("fairlead")
        url = f"postgresql://{address.user}@{address.host}:{address.port}/{address.database}"
        with console(cluster, "store") as page:
            path = "/components/console/store-password"
            wrong = {"url": url, "password": "wrong-wrong-wrong"}
            status, fault = own.send(page, "POST", path, wrong)
            assert (status, fault["fields"][0]["path"]) == (422, "url"), fault
            assert "look at user, password and database" in fault["fields"][0]["error"]
            assert api.get(SECRET).status == 404
            status, written = own.send(page, "POST", path, {**wrong, "password": address.password})
            assert (status, written["ok"]) == (200, True), written
            values = f'store: {{url: "{url}", size: ""}}\n'
            order = {"component": "console", "do": "deploy", "values": values}
            carried_out(own, page, order)
            ready_component(own, page, "console")
        made = api.get(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/fairlead-console").body
        command = made["spec"]["template"]["spec"]["containers"][0]["command"]
        assert f"--store={url}" in command
        assert set(api.get(SECRET).body["data"]) == {"store-password"}
        kinds = cluster.admin.run("api-resources", "--verbs=list", "-o", "name").split()
        others = ",".join(each for each in kinds if each not in ("secrets", "componentstatuses"))
        everything = cluster.admin.run("get", others, "-A", "-o", "yaml", "--show-managed-fields")
        logs = [each.read_bytes() for each in cluster.folder.glob("store.*") if each.is_file()]
        for text in (everything.encode(), *logs):
            assert address.password.encode() not in text
            assert b"wrong-wrong" not in text
        check_as_by_command(cluster)
    finally:
        server.end()


def test_parts_with_webhooks_are_deployed(
    cluster: ControlPlane, own: Administrator, api: ApiClient
) -> None:
    """KWOK runs no program, so the one that fills in their authority runs beside the cluster."""
    account = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/fairlead-admission-webhook"
    with console(cluster, "webhooks") as page:
        order = {"component": "quota", "do": "deploy"}
        status, plan = own.send(page, "POST", "/plans", order)
        assert status == 201, plan
        assert own.send(page, "POST", "/operations", {"planId": plan["planId"]})[0] == 202
        wait_until("the account is made", lambda: api.get(account).status == 200)
        with webhook_process(cluster, free_port()):
            finished(own, page, plan["planId"])
            assert authorities(api).keys() == {"quota-tree.fairlead.io"}
            carried_out(own, page, {"component": "people", "do": "deploy"})
            found = authorities(api)
            assert {"quota-tree.fairlead.io", "people.fairlead.io"} <= found.keys()
            assert len(set(found.values())) == 1
            check_as_by_command(cluster)


def authorities(api: ApiClient) -> dict[str, str]:
    """The authority and what happens without an answer, of each webhook of Fairlead."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    hooks = [hook for each in api.get(path).body["items"] for hook in each["webhooks"]]
    assert {hook["failurePolicy"] for hook in hooks} == {"Fail"}, "none is held back any more"
    return {hook["name"]: hook["clientConfig"]["caBundle"] for hook in hooks}
