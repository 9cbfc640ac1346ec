"""Operations of the console on a real API server, with the account and the rights of deploy/: a
console is killed in the middle, and the next one finishes what it began.

Fluid itself does not run: the test writes the status as Fluid's controllers write it.
"""

from __future__ import annotations

import functools
import ssl
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.contracts.api_client import MERGE, ApiClient
from tests.contracts.data_objects import FLUID, claim, fluid_controller, with_fluid_node
from tests.edge.pki import Authority
from tests.kube.console_line import ACCOUNT, Administrator, console, install_rights
from tests.kube.console_operations import carried_out, finished, ready_component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_fluid
from tests.kube.deployed import of_file
from tests.kube.helm import Helm
from tests.kube.objects import namespace
from tests.kube.programs import program
from tests.kube.quota_line import SYSTEM
from tests.kube.small_chart import VERSION, write_small_chart
from tests.waiting import wait_until

SPACE, CLAIM, SET = "team-a", "raw", "raw-acc"
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "missing"},
    "spec": {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "nfs": {"server": "nfs.example", "path": "/raw"},
    },
}
"""The volume of the claim."""


pytestmark = pytest.mark.turns(4, 2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install_rights(made)
        made.admin.apply([namespace(SPACE)])
        install_fluid(made.admin)
        api = ApiClient("real", made.kubeconfig, keeps_connections=True)
        fluid_controller(api)
        place = f"/api/v1/namespaces/{SPACE}/persistentvolumeclaims"
        assert api.post(place, claim(CLAIM)).status == 201
        assert api.post("/api/v1/persistentvolumes", VOLUME).status == 201
        with with_fluid_node(api, "node-1"):
            yield made


def test_a_console_finishes_what_a_killed_one_began(cluster: ControlPlane) -> None:
    api = ApiClient("real", cluster.kubeconfig, keeps_connections=True)
    claims = f"/api/v1/namespaces/{SPACE}/persistentvolumeclaims/{CLAIM}"
    wait_until("the claim is bound", lambda: api.get(claims).body["status"].get("phase") == "Bound")
    own = Administrator(cluster.admin)
    data_sets = f"{FLUID}/namespaces/{SPACE}/datasets/{SET}"
    runtimes = f"{FLUID}/namespaces/{SPACE}/alluxioruntimes/{SET}"
    with console(cluster, "first") as first:
        place = f"/volumes/{SPACE}/{CLAIM}/acceleration"
        status, preview = own.send(first, "POST", f"{place}?dryRun=true", {"workers": 1})
        others = {e["check"]: e["state"] for e in preview["checks"] if e["state"] != "ok"}
        # RBAC cannot let the console read the records of Helm alone; Fluid's controllers do not run
        assert others == {"name-free": "unknown", "runtime-controller": "warn"}, preview
        status, begun = own.send(first, "POST", place, {"workers": 1})
        assert status == 202, begun
        id = begun["operation"]
        wait_until("the runtime is made", lambda: api.get(runtimes).status == 200)
        first.component.kill()
    uid = api.get(data_sets).body["metadata"]["uid"]
    with console(cluster, "second") as second:
        assert own.state(second, id) == "Running"
        done = api.patch(
            f"{data_sets}/status", {"status": {"phase": "Bound", "conditions": []}}, MERGE
        )
        assert done.status == 200, done.message
        wait_until("the operation has ended", lambda: own.state(second, id) != "Running")
        _, found = own.send(second, "GET", f"/operations/{id}")
        assert (found["row"]["state"], found["row"]["message"]) == ("Succeeded", "")
        meta = api.get(data_sets).body["metadata"]
        assert (meta["uid"], meta["annotations"]["fairlead.io/operation"]) == (uid, id)

        status, ending = own.send(second, "DELETE", f"/datasets/{SPACE}/{SET}")
        assert status == 202, ending
        id = ending["operation"]
        wait_until("it has ended", lambda: own.state(second, id) != "Running")
        _, found = own.send(second, "GET", f"/operations/{id}")
        assert (found["row"]["state"], found["row"]["message"]) == ("Succeeded", "")
        assert (api.get(data_sets).status, api.get(runtimes).status) == (404, 404)
        assert api.get(claims).status == 200


def grant(cluster: ControlPlane, name: str, *words: str) -> None:
    """As docs/how-to/data-sets.md shows it."""
    space = ("-n", SPACE)
    cluster.admin.run("create", "role", name, *space, *words)
    account = f"--serviceaccount={SYSTEM}:{ACCOUNT}"
    cluster.admin.run("create", "rolebinding", name, *space, f"--role={name}", account)


def test_rights_in_a_namespace_make_its_unknown_checks_known(cluster: ControlPlane) -> None:
    own = Administrator(cluster.admin, "checker")
    order = {"namespace": SPACE, "name": "faces", "mount": "oss://bucket/faces", "workers": 1}
    with console(cluster, "checks") as server:

        def states(secret: str) -> dict[str, str]:
            body = {**order, "secret": secret}
            status, found = own.send(server, "POST", "/datasets?dryRun=true", body)
            assert status == 200, found
            checks = {each["check"]: each["state"] for each in found["checks"]}
            return {name: checks[name] for name in ("name-free", "secret")}

        assert states("oss-keys") == {"name-free": "unknown", "secret": "unknown"}
        grant(
            cluster, "fairlead-keys", "--verb=get", "--resource=secrets", "--resource-name=oss-keys"
        )
        grant(cluster, "fairlead-releases", "--verb=list", "--resource=configmaps,secrets")
        wait_until(
            "both are known", lambda: states("oss-keys") == {"name-free": "ok", "secret": "fail"}
        )
        cluster.admin.run("create", "secret", "generic", "oss-keys", "-n", SPACE)
        assert states("oss-keys") == {"name-free": "ok", "secret": "ok"}
        assert states("another")["secret"] == "unknown"
    for name in ("fairlead-keys", "fairlead-releases"):
        cluster.admin.run("delete", "role,rolebinding", name, "-n", SPACE)


POLICY = "fairlead-console-secrets"
"""It lets the console write no Secrets but its own, so no records of Helm."""
MANIFESTS = """\
apiVersion: v1
kind: Namespace
metadata: {name: mpi-operator}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: mpi-config, namespace: mpi-operator}
data: {answer: "42"}
"""


def test_a_component_needs_rights_that_the_console_does_not_have_by_itself(
    cluster: ControlPlane,
) -> None:
    """The plan of one console is started by the next one."""
    own = Administrator(cluster.admin, "planner")
    api = ApiClient("real", cluster.kubeconfig, keeps_connections=True)
    order = {"component": "mpi-operator", "do": "deploy", "manifests": MANIFESTS}
    made = "/api/v1/namespaces/mpi-operator/configmaps/mpi-config"
    with console(cluster, "planning") as first:
        status, listed = own.send(first, "GET", "/components")
        states = {row["id"]: row["state"] for row in listed["items"]}
        assert (status, states["mpi-operator"]) == (200, "NotInstalled"), listed
        assert [each for each in listed["warnings"] if each["code"] != "no-helm"] == []
        status, found = own.send(first, "POST", "/plans?dryRun=true", order)
        checks = {each["check"]: each["state"] for each in found["checks"]}
        assert (status, found["valid"], checks["permissions"]) == (200, False, "fail")
        assert own.send(first, "POST", "/plans", order)[0] == 422
        cluster.admin.run(
            *("create", "clusterrolebinding", "fairlead-console-components"),
            *("--clusterrole=cluster-admin", f"--serviceaccount={SYSTEM}:{ACCOUNT}"),
        )
        wait_until(
            "the right counts",
            lambda: own.send(first, "POST", "/plans?dryRun=true", order)[1]["valid"],
        )
        status, plan = own.send(first, "POST", "/plans", order)
        assert status == 201, plan
        assert api.get(made).status == 404
    with console(cluster, "starting") as second:
        status, begun = own.send(second, "POST", "/operations", {"planId": plan["planId"]})
        assert status == 202, begun
        finished(own, second, plan["planId"])
        assert api.get(made).body["data"] == {"answer": "42"}
        ready_component(own, second, "mpi-operator")
        _, found = own.send(second, "GET", "/components/mpi-operator")
        assert {each["name"] for each in found["objects"]} == {"mpi-operator", "mpi-config"}
        order = {"component": "mpi-operator", "do": "remove"}
        status, plan = own.send(second, "POST", "/plans", order)
        assert status == 201, plan
        # what the plan has seen changes before it starts
        assert api.patch(made, {"data": {"answer": "43"}}, MERGE).status == 200
        status, stale = own.send(second, "POST", "/operations", {"planId": plan["planId"]})
        assert (status, stale["code"]) == (409, "blocked")
        _, plan = own.send(second, "POST", "/plans", order)
        assert own.send(second, "POST", "/operations", {"planId": plan["planId"]})[0] == 202
        finished(own, second, plan["planId"])
        assert api.get(made).status == 404


@pytest.fixture
def charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server with charts, which real Helm of the console trusts."""
    authority = Authority()
    pair = authority.issue("charts")
    for name, data in {"ca": authority.pem, "own": pair.certificate_pem + pair.key_pem}.items():
        (tmp_path / f"{name}.pem").write_bytes(data)
    folder = tmp_path / "charts"
    chart = write_small_chart(tmp_path / "chart", name="kube-prometheus-stack")
    Helm("helm3", tmp_path).run("package", str(chart), "--destination", str(folder))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("FAIRLEAD_HELM", str(program("helm3")))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        yield f"https://127.0.0.1:{server.server_address[1]}/kube-prometheus-stack-{VERSION}.tgz"
        server.shutdown()
        thread.join()


def test_a_chart_at_an_address_is_deployed_upgraded_and_removed_by_the_console(
    cluster: ControlPlane, charts: str
) -> None:
    own = Administrator(cluster.admin, "charter")
    cluster.admin.run(
        *("create", "clusterrolebinding", "fairlead-console-charts"),
        *("--clusterrole=cluster-admin", f"--serviceaccount={SYSTEM}:{ACCOUNT}"),
    )
    api = ApiClient("real", cluster.kubeconfig, keeps_connections=True)
    made = "/api/v1/namespaces/monitoring/configmaps/prometheus-settings"
    order = {"component": "prometheus", "do": "deploy", "chart": charts, "values": "color: green"}
    with console(cluster, "charts") as server:
        wrong = {**order, "chart": charts.replace("kube-", "no-")}
        status, fault = own.send(server, "POST", "/plans", wrong)
        assert (status, fault["fields"][0]["path"]) == (422, "chart"), fault
        _, found = own.send(server, "POST", "/plans?dryRun=true", order)
        (helm,) = (each for each in found["checks"] if each["check"] == "helm")
        assert helm["state"] == "fail" and POLICY in helm["sentence"], found
        cluster.admin.run("delete", "validatingadmissionpolicybinding", POLICY)
        wait_until(
            "the policy is gone",
            lambda: own.send(server, "POST", "/plans?dryRun=true", order)[1]["valid"],
        )
        carried_out(own, server, order)
        assert api.get(made).body["data"] == {"color": "green"}
        ready_component(own, server, "prometheus")
        _, found = own.send(server, "GET", "/components/prometheus")
        assert found["row"]["version"] == VERSION
        assert found["values"] == "color: green\n"
        plan = carried_out(own, server, {**order, "do": "upgrade", "values": "color: blue"})
        (change,) = plan["changes"]
        assert (change["do"], change["name"]) == ("change", "prometheus-settings")
        assert change["fields"] == [{"path": "data.color", "old": '"green"', "new": '"blue"'}]
        assert api.get(made).body["data"] == {"color": "blue"}
        carried_out(own, server, {"component": "prometheus", "do": "remove"})
        assert api.get(made).status == 404
    cluster.admin.apply(of_file("console-admission.yaml"))
