"""Signing in at `fairlead console` on a real API server: tokens that live, expire and are revoked,
a real OpenID Connect provider, and how fast a disabled user is out.

The console runs with the account and the rights of deploy/, within its policies, and makes its key.
"""

from __future__ import annotations

import json
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.kube.addresses import free_port
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_job_kinds
from tests.kube.deployed import of_file
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.objects import namespace
from tests.kube.oidc_provider import CLIENT, SECRET, UID, PlainBrowser, Provider, provider
from tests.kube.programs import program
from tests.kube.quota_line import SYSTEM, big_node, install_crd
from tests.kube.servers import Server, running
from tests.kube.team_line import PlayedKubelet, Visitor
from tests.waiting import wait_until

from fairlead.settings import SIGN_IN_KEY_SECRET

pytestmark = pytest.mark.turns(2, 0)

Object = dict[str, Any]
PLACE = "kube-ai"
ACCOUNT = "fairlead-reader"
PEOPLE = "fairlead-people-controller"
NODE = "only"
BACK = "/api/v1/signin/oidc/callback"


class Console(NamedTuple):
    server: Server
    issuer_port: int
    log: Path
    secret_file: Path


def user(name: str, role: str = "researcher", **more: Any) -> Object:
    spec = {"userName": name.title(), "userId": name, "apiRoles": [role], "groups": []}
    return {
        "apiVersion": "fairlead.io/v1",
        "kind": "User",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {**spec, **more},
    }


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install_crd(made)
        made.admin.apply([namespace(SYSTEM)])
        made.admin.apply(of_file("people.yaml"))
        made.admin.run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        for name in ("reader", "console-sign-in", "console-people", "console-admission"):
            made.admin.apply(of_file(f"{name}.yaml"))
        controller = [*of_file("people-controller.yaml"), *of_file("people-admission.yaml")]
        made.admin.apply([each for each in controller if each["kind"] != "Deployment"])
        install_job_kinds(made.admin)
        made.admin.create([big_node(NODE, 8)])
        made.admin.apply([user("bob", externalUser={"authType": "oidc", "uid": UID}), user("eve")])
        for name in ("bob", "eve", "stranger"):
            made.admin.run("create", "serviceaccount", name, "-n", PLACE)
        for name in ("bob", "eve"):  # as the people controller writes it
            made.admin.run("label", "serviceaccount", name, "-n", PLACE, f"fairlead.io/user={name}")
            status = f'{{"status":{{"serviceAccount":{{"name":"{name}","namespace":"{PLACE}"}}}}}}'
            made.admin.run(
                *("patch", "users.fairlead.io", name, "-n", PLACE, "--type=merge"),
                *("--subresource=status", "-p", status),
            )
        yield made


@pytest.fixture(scope="module")
def console(cluster: ControlPlane) -> Iterator[Console]:
    token = cluster.admin.run("create", "token", ACCOUNT, "-n", SYSTEM, "--duration=4h").strip()
    path = write_kubeconfig(
        cluster.folder / "console.kubeconfig", cluster.server, cluster.authority, token_user(token)
    )
    secret = cluster.folder / "secrets" / "oidc-client-secret"
    secret.parent.mkdir()
    secret.write_text(SECRET + "\n")
    port, log = free_port(), cluster.folder / "console.log"
    flags = (
        *(f"--kubeconfig={path}", "--gpu-source=none", "--sign-in=on"),
        f"--sign-in-key-secret={SYSTEM}/{SIGN_IN_KEY_SECRET}",
        f"--store=sqlite:///{cluster.folder / 'store.sqlite'}",
        *(f"--oidc-issuer=http://localhost:{port}/", f"--oidc-client-id={CLIENT}"),
        f"--secrets-folder={secret.parent}",
    )
    with running("console", *flags, log=log) as server:
        yield Console(server, port, log, secret)


@pytest.fixture(scope="module")
def real_provider(cluster: ControlPlane, console: Console) -> Iterator[Provider]:
    back = console.server.url + BACK
    with provider(back, cluster.folder / "provider.log", console.issuer_port) as made:
        yield made


def token_of(cluster: ControlPlane, name: str, *flags: str) -> str:
    return cluster.admin.run("create", "token", name, "-n", PLACE, *flags).strip()


def sign_in(console: Console, token: str) -> tuple[PlainBrowser, int, Any]:
    browser = PlainBrowser()
    found = browser.post(f"{console.server.url}/api/v1/signin", {"way": "token", "secret": token})
    return browser, found.status, found.json


def me(console: Console, browser: PlainBrowser) -> tuple[int, Any]:
    found = browser.send(f"{console.server.url}/api/v1/me")
    return found.status, found.json


def test_a_token_signs_its_user_in_and_nothing_has_it(
    cluster: ControlPlane, console: Console
) -> None:
    token = token_of(cluster, "bob")
    browser, status, answer = sign_in(console, token)
    assert status == 200, answer
    assert me(console, browser)[1]["user"] == {
        "name": "Bob",
        "role": "researcher",
        "id": "bob",
        "groups": [],
        "leaves": [],
        "namespaces": [],
    }
    program = PlainBrowser().send(
        f"{console.server.url}/api/v1/me", Authorization=f"Bearer {token}"
    )
    assert program.json["way"] == "bearer"
    (cookie,) = (each.value or "" for each in browser.cookies)
    for path in cluster.folder.glob("*"):
        if path.is_file() and path.name.startswith(("console.log", "store.sqlite")):
            kept = path.read_bytes()
            assert token.encode() not in kept, path
            assert cookie.partition(".")[0].encode() not in kept, path


def test_tokens_that_do_not_count_are_refused_with_the_reason(
    cluster: ControlPlane, console: Console
) -> None:
    deleted = "gone"
    cluster.admin.run("create", "serviceaccount", deleted, "-n", PLACE)
    of_deleted = token_of(cluster, deleted)
    cluster.admin.run("delete", "serviceaccount", deleted, "-n", PLACE)
    other = token_of(cluster, "bob", "--audience=https://other.example")
    head, body, signature = token_of(cluster, "bob").split(".")
    foreign = f"{head}.{body}.{signature[::-1]}"
    reason = "the API server does not accept this token: "
    for token, why in (
        (of_deleted, "its ServiceAccount, or the Secret that it is bound to, is gone"),
        (other, "it is for another audience"),
        (foreign, "it is not a token of this cluster"),
        ("nonsense", "it is not a token of this cluster"),
    ):
        _, status, answer = sign_in(console, token)
        assert (status, answer["code"], answer["error"]) == (401, "signed-out", reason + why)
    _, status, answer = sign_in(console, token_of(cluster, "stranger"))
    assert (status, answer["code"]) == (403, "no-user")


def test_a_revoked_credential_signs_in_no_more(cluster: ControlPlane, console: Console) -> None:
    cluster.admin.run("create", "secret", "generic", "bob-1", "-n", PLACE)
    token = token_of(cluster, "bob", "--bound-object-kind=Secret", "--bound-object-name=bob-1")
    browser, status, _ = sign_in(console, token)
    assert (status, me(console, browser)[0]) == (200, 200)
    cluster.admin.run("delete", "secret", "bob-1", "-n", PLACE)
    gone = time.monotonic()
    # Another Secret of the name is not the one to which the token is bound.
    cluster.admin.run("create", "secret", "generic", "bob-1", "-n", PLACE)
    wait_until("the sign-in has ended", lambda: me(console, browser)[0] == 401, 30)
    assert time.monotonic() - gone < 3
    began = time.monotonic()
    wait_until("the token does not count", lambda: sign_in(console, token)[1] == 401, 30)
    # 12 s are promised, two thirds of them of a cache in the API server; a busy machine adds some
    assert time.monotonic() - began < 20


def test_who_may_make_users_is_an_administrator_before_there_is_one(
    cluster: ControlPlane, console: Console
) -> None:
    cluster.admin.run("create", "serviceaccount", "installer", "-n", SYSTEM)
    cluster.admin.run(
        *("create", "clusterrolebinding", "installer", "--clusterrole=cluster-admin"),
        f"--serviceaccount={SYSTEM}:installer",
    )
    token = cluster.admin.run("create", "token", "installer", "-n", SYSTEM).strip()
    browser, status, answer = sign_in(console, token)
    assert status == 200, answer
    assert me(console, browser)[1]["user"]["role"] == "admin"
    cluster.admin.run("delete", "clusterrolebinding", "installer")
    wait_until("the right is gone", lambda: me(console, browser)[0] == 403, 30)


def test_an_administrator_makes_users_and_credentials_with_the_rights_of_an_installation(
    cluster: ControlPlane, console: Console
) -> None:
    """The console's account has the rights of deploy/, and no others."""
    cluster.admin.run("create", "serviceaccount", "maker", "-n", SYSTEM)
    cluster.admin.run(
        *("create", "clusterrolebinding", "maker", "--clusterrole=cluster-admin"),
        f"--serviceaccount={SYSTEM}:maker",
    )
    token = cluster.admin.run("create", "token", "maker", "-n", SYSTEM).strip()

    def send(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {token}", "Content_Type": "application/json", **headers}
        found = PlainBrowser().send(f"{console.server.url}/api/v1{path}", method, data, **sent)
        return found.status, found.json

    status, made = send("POST", "/users", {"userName": "Ruth", "role": "admin"})
    assert (status, made["id"]) == (201, "ruth"), made
    change = {"userName": "Ruth B", "role": "admin", "groups": [], "disabled": True}
    wait_until("the user is followed", lambda: send("GET", "/users/ruth")[0] == 200, 30)
    status, refused = send("PUT", "/users/ruth", change, If_Match=made["version"])
    assert (status, refused["code"]) == (409, "blocked"), "the last administrator"
    status, changed = send(
        "PUT", "/users/ruth", {**change, "disabled": False}, If_Match=made["version"]
    )
    assert (status, changed["userName"]) == (200, "Ruth B"), changed
    status, conflict = send("PUT", "/users/ruth", change, If_Match=made["version"])
    assert (status, conflict["current"]["userName"]) == (409, "Ruth B")
    status, issued = send("POST", "/users/bob/kubeconfigs", {"lifetimeSeconds": 600})
    assert status == 201, issued
    status, issued = send("POST", "/users/bob/tokens", {"lifetimeSeconds": 600})
    assert status == 201, issued
    assert sign_in(console, issued["token"])[1] == 200
    assert send("DELETE", f"/users/bob/tokens/{issued['id']}")[0] == 200
    wait_until("it does not count", lambda: sign_in(console, issued["token"])[1] == 401, 30)
    tree = {"groupName": "teamA", "leaf": "root.a"}
    status, refused = send("POST", "/groups", tree)
    assert (status, refused["fields"][0]["path"]) == (422, "leaf"), "there is no tree"
    cluster.admin.run("delete", "clusterrolebinding", "maker")
    account = f"--as=system:serviceaccount:{SYSTEM}:{ACCOUNT}"
    for verb, resource in (("create", "users.fairlead.io"), ("create", "secrets")):
        assert can(cluster, verb, resource, account, PLACE)
        assert not can(cluster, verb, resource, account, "default")
    for resource in ("pods", "rolebindings.rbac.authorization.k8s.io", "namespaces"):
        assert not can(cluster, "delete", resource, account, PLACE)


def test_the_account_of_the_console_makes_no_other_secrets_and_tokens(
    cluster: ControlPlane, console: Console
) -> None:
    """What RBAC alone would let a holder of its token do."""
    account = f"--as=system:serviceaccount:{SYSTEM}:{ACCOUNT}"
    cluster.admin.run("create", "serviceaccount", "foreign", "-n", PLACE)
    cluster.admin.run("create", "secret", "generic", "foreign", "-n", PLACE)
    for words, why in (
        (("create", "secret", "generic", "other", "-n", SYSTEM), "the console makes the Secret"),
        (("create", "secret", "generic", "other", "-n", PLACE), "the console makes the Secret"),
        (("delete", "secret", "foreign", "-n", PLACE), "the console makes the Secret"),
        (("delete", "serviceaccount", "foreign", "-n", PLACE), "the console deletes Service"),
        (("create", "token", "bob", "-n", PLACE), "the console issues tokens that are bound"),
    ):
        with pytest.raises(KubectlError, match=why):
            cluster.admin.run(*words, account)
    kept = cluster.admin.run(
        *("get", "secret", SIGN_IN_KEY_SECRET, "-n", SYSTEM, "-o", "jsonpath={.data.key}")
    )
    assert len(kept) > 40, "the console has made its key"


@pytest.mark.parametrize(
    "other",
    [
        ("--as=root",),
        ("--as=system:admin", "--as-group=system:masters"),
        ("--as=system:node:any",),
        (f"--as=system:serviceaccount:{SYSTEM}:{ACCOUNT}",),
        ("--as=system:serviceaccount:kube-system:default",),
        (f"--as=system:serviceaccount:{PLACE}:bob", "--as-group=system:masters"),
        (f"--as=system:serviceaccount:{PLACE}:bob", "--as-uid=1"),
    ],
)
def test_the_account_of_the_console_acts_as_users_of_fairlead_alone(
    cluster: ControlPlane, console: Console, other: tuple[str, ...]
) -> None:
    """No other user, no group, and no account of another namespace."""
    kubectl = Kubectl(program("kubectl"), cluster.folder / "console.kubeconfig", cluster.folder)
    bob = f"system:serviceaccount:{PLACE}:bob"
    assert bob in kubectl.run("auth", "whoami", f"--as={bob}")
    with pytest.raises(KubectlError, match="cannot impersonate"):
        kubectl.run("get", "pods", "-n", "default", *other)


def can(cluster: ControlPlane, verb: str, resource: str, account: str, place: str) -> bool:
    try:
        cluster.admin.run("auth", "can-i", verb, resource, account, "-n", place)
    except KubectlError:  # its exit status for "no"
        return False
    return True


def test_a_disabled_user_is_out_within_a_second_and_stays_out(
    cluster: ControlPlane, console: Console
) -> None:
    def disable(is_disabled: str) -> None:
        cluster.admin.run(
            *("patch", "users.fairlead.io", "eve", "-n", PLACE, "--type=merge"),
            *("-p", f'{{"spec":{{"disabled":{is_disabled}}}}}'),
        )

    def seconds_until_out() -> float:
        browser, status, answer = sign_in(console, token_of(cluster, "eve"))
        assert status == 200, answer
        disable("true")
        began = time.monotonic()
        wait_until("eve is out", lambda: me(console, browser)[0] in (401, 403), 30, 0.05)
        seconds = time.monotonic() - began
        disable("false")
        wait_until(
            "eve may sign in again",
            lambda: sign_in(console, token_of(cluster, "eve"))[1] == 200,
            30,
        )
        assert me(console, browser)[0] == 401
        return seconds

    # a busy machine has quick moments, too
    assert any(seconds_until_out() < 1 for _ in range(3))


def test_a_kubeconfig_from_the_console_works_and_is_revoked(
    cluster: ControlPlane, console: Console, tmp_path: Path
) -> None:
    browser, status, answer = sign_in(console, token_of(cluster, "bob"))
    assert status == 200, answer
    csrf = me(console, browser)[1]["csrf"]
    made = browser.post(
        f"{console.server.url}/api/v1/me/kubeconfigs", {"note": "test"}, X_Fairlead_Csrf=csrf
    )
    assert made.status == 201, made.body
    path = tmp_path / "bob.kubeconfig"
    path.write_text(made.json["kubeconfig"], encoding="utf-8")
    kubectl = Kubectl(program("kubectl"), path, tmp_path)
    assert f"system:serviceaccount:{PLACE}:bob" in kubectl.run("auth", "whoami")
    credential = made.json["id"]
    annotations = cluster.admin.run(
        *("get", "secret", credential, "-n", PLACE, "-o", "jsonpath={.metadata.annotations}")
    )
    assert '"fairlead.io/issued-by":"bob"' in annotations
    cluster.admin.run("delete", "secret", credential, "-n", PLACE)

    def is_refused() -> bool:
        try:
            kubectl.run("auth", "whoami")
        except KubectlError as error:
            return "Unauthorized" in str(error) or "must be logged in" in str(error)
        return False

    wait_until("the token does not count", is_refused, 30)


def test_a_user_signs_in_at_a_real_provider(console: Console, real_provider: Provider) -> None:
    browser = PlainBrowser()
    api = f"{console.server.url}/api/v1"
    assert browser.send(f"{api}/signin/methods").json["ways"] == ["code", "oidc", "token"]
    started = browser.send(f"{api}/signin/oidc/start?next=/jobs")
    assert started.status == 303
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(started.location).query)
    assert asked["code_challenge_method"] == ["S256"]
    back = browser.log_in(started.location)
    assert back.startswith(console.server.url + BACK)
    finished = browser.send(back)
    assert (finished.status, finished.location) == (303, "/jobs"), finished.body
    status, answer = me(console, browser)
    assert (status, answer["user"]["id"], answer["way"]) == (200, "bob", "oidc")

    replayed = browser.send(back)
    assert (replayed.status, replayed.json["code"]) == (400, "malformed")


def test_a_code_of_the_provider_works_once(console: Console, real_provider: Provider) -> None:
    """Also with a state that is right: the provider itself refuses the code."""
    api, first, second = f"{console.server.url}/api/v1", PlainBrowser(), PlainBrowser()
    back = first.log_in(first.send(f"{api}/signin/oidc/start").location)
    used = urllib.parse.parse_qs(urllib.parse.urlsplit(back).query)["code"][0]
    assert first.send(back).status == 303
    state = urllib.parse.parse_qs(
        urllib.parse.urlsplit(second.send(f"{api}/signin/oidc/start").location).query
    )["state"][0]
    stolen = second.send(f"{console.server.url}{BACK}?code={used}&state={state}")
    assert (stolen.status, stolen.json["error"]) == (
        401,
        "the provider does not accept the code: it was used, or is too old",
    )


# --- the first administrator becomes a user -------------------------------------------------------


@pytest.fixture
def job(cluster: ControlPlane) -> Iterator[str]:
    """Address of a job with a pod that runs, whose log a kubelet of this test has."""
    admin, space = cluster.admin, "team"
    admin.apply([namespace(space)])
    template = {"spec": {"containers": [{"name": "pytorch", "image": "app:1"}]}}
    made: Object = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "bert", "namespace": space},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}},
    }
    admin.create([made])
    uid = admin.run("get", "pytorchjob", "bert", "-n", space, "-o", "jsonpath={.metadata.uid}")
    labels = {
        "training.kubeflow.org/job-name": "bert",
        "training.kubeflow.org/replica-type": "master",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
    }
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "bert", "uid": uid}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "bert-master-0",
            "namespace": space,
            "labels": labels,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {**template["spec"], "nodeName": NODE},
    }
    admin.create([pod])
    admin.run(
        *("wait", "--for=jsonpath={.status.phase}=Running", "pod/bert-master-0", "-n", space),
        "--timeout=60s",
    )
    kubelet = PlayedKubelet(cluster)
    try:
        kubelet.answer_for(cluster, NODE)
        yield f"/jobs/{space}/pytorchjob/bert"
    finally:
        kubelet.stop()
        admin.run("delete", "namespace", space, "--wait=false")


def test_the_first_administrator_becomes_a_user_by_one_click(
    cluster: ControlPlane, console: Console, job: str
) -> None:
    """Before it the API server lets the console act for users only; afterwards it judges the new
    user, as soon as the people controller has bound it.
    """
    admin, owner = cluster.admin, f"system:serviceaccount:{SYSTEM}:owner"
    admin.run("create", "serviceaccount", "owner", "-n", SYSTEM)
    admin.run(
        *("create", "clusterrolebinding", "owner", "--clusterrole=cluster-admin"),
        f"--serviceaccount={SYSTEM}:owner",
    )
    token = admin.run("create", "token", "owner", "-n", SYSTEM).strip()
    visitor = Visitor(console.server.url, token)
    assert visitor.signed.status == 200, visitor.signed.body
    wait_until("the job is on the board", lambda: visitor.ask(job)[0] == 200)

    asked = ((f"{job}/logs", "GET", None), (f"{job}/manifest", "GET", None))
    cordon = (f"/nodes/{NODE}", "PATCH", {"schedulable": False})
    for path, method, body in (*asked, cordon):
        status, answer = visitor.ask(path, method, body)
        assert (status, answer["code"]) == (403, "forbidden"), answer
        assert "cannot impersonate" in answer["error"]
        assert answer["hint"] == (
            "the console acts for users only: create your user on the page My access"
        )

    status, made = visitor.ask("/me/user", "POST", {"userName": "Ingrid"})
    assert (status, made["id"], made["role"]) == (201, "ingrid", "admin"), made
    spec = json.loads(admin.run("get", "users.fairlead.io", "ingrid", "-n", PLACE, "-o", "json"))
    assert spec["spec"]["externalUser"]["uid"] == owner
    wait_until("one is the user", lambda: visitor.ask("/me")[1]["user"]["id"] == "ingrid")
    visitor.forget_csrf()
    status, answer = visitor.ask(f"{job}/logs")
    assert status == 403 and "no ServiceAccount of Fairlead's yet" in answer["error"], answer

    with people_controller(cluster):
        wait_until("the log is there", lambda: visitor.ask(f"{job}/logs") == (200, "now\n"), 60)
        assert "kind: PyTorchJob" in visitor.ask(f"{job}/manifest")[1]["yaml"]
        assert visitor.ask(*cordon)[0] == 200
        assert admin.run("get", "node", NODE, "-o", "jsonpath={.spec.unschedulable}") == "true"
        assert visitor.ask("/me/user", "POST", {"userName": "Other"})[0] == 409
        assert Visitor(console.server.url, token).ask("/me")[1]["user"]["id"] == "ingrid"
        # The User decides from now on, and not what the account itself may do.
        admin.run("delete", "clusterrolebinding", "owner")
        disabled = '{"spec":{"disabled":true}}'
        assert visitor.ask(f"{job}/logs")[0] == 200
        admin.run(
            *("patch", "users.fairlead.io", "ingrid", "-n", PLACE, "--type=merge", "-p", disabled)
        )
        wait_until("one is out", lambda: visitor.ask("/me")[0] in (401, 403), 30)
        admin.run("delete", "users.fairlead.io", "ingrid", "-n", PLACE, "--timeout=60s")


@contextmanager
def people_controller(cluster: ControlPlane) -> Iterator[Server]:
    token = cluster.admin.run("create", "token", PEOPLE, "-n", SYSTEM, "--duration=4h").strip()
    path = write_kubeconfig(
        cluster.folder / "people.kubeconfig", cluster.server, cluster.authority, token_user(token)
    )
    flags = (f"--kubeconfig={path}", "--identity=people-0")
    with running("people-controller", *flags, log=cluster.folder / "people.log") as server:
        yield server
