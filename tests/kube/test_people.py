"""Users and groups on a real API server: what the definitions refuse, each cell of the table of
rights, the controller ended at every call, and how fast rights come and go.

What users should have is typed here from docs/spec/people.md, and read with kubectl's and the API
server's own answers.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from tests.cli.arena import environment, run_main
from tests.contracts.api_client import ApiClient
from tests.contracts.rights import RBAC, ask_for, token_of
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.objects import namespace
from tests.kube.people_bounds import BEFORE, WRITES, Write
from tests.kube.programs import program
from tests.kube.quota_line import SYSTEM, install_crd, tree
from tests.kube.servers import FAIRLEAD
from tests.kube.used_rights import unused
from tests.waiting import until, wait_until

from fairlead.apps.people.people_controller import PeopleController
from fairlead.edge.connection.connection import Connection
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.people.people_api import KubePeopleApi
from fairlead.edge.queries.dependency_facts import DependencyQuery
from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import Changes
from fairlead.model.people.actions import PeopleAction
from fairlead.rules.people.decider import PeopleDecider
from fairlead.settings import PEOPLE_LEASE

pytestmark = pytest.mark.turns(2, 1)

Object = dict[str, Any]
ACCOUNT = "fairlead-people-controller"
PLACE = "kube-ai"
SPACES = ("namespace1", "namespace2")
USERS = f"/apis/fairlead.io/v1/namespaces/{PLACE}/users"
GROUPS = f"/apis/fairlead.io/v1/namespaces/{PLACE}/usergroups"
LABELLED = {"labelSelector": "fairlead.io/user"}


def quota(first: str = "a") -> Object:
    """Leaves `root.<first>` with namespace1, and `root.b` with namespace2."""
    leaves = ((f"root.{first}", "namespace1"), ("root.b", "namespace2"))
    children = [{"name": name, "min": {"cpu": 1}, "namespaces": [space]} for name, space in leaves]
    return {"name": "root", "min": {"cpu": 4}, "max": {"cpu": 4}, "children": children}


def user(name: str, *groups: str, role: str = "researcher", **more: Any) -> Object:
    spec = {"userName": name.title(), "userId": name, "apiRoles": [role], "groups": list(groups)}
    return {
        "apiVersion": "fairlead.io/v1",
        "kind": "User",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {**spec, **more},
    }


def group(name: str, leaf: str, **more: Any) -> Object:
    return {
        "apiVersion": "fairlead.io/v1",
        "kind": "UserGroup",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {"groupName": name, "quotaNames": [leaf], **more},
    }


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    audited = (f"system:serviceaccount:{SYSTEM}:{ACCOUNT}",)
    with running_control_plane(audited=audited) as made:
        install_crd(made)
        made.admin.apply([namespace(each) for each in (SYSTEM, *SPACES)])
        made.admin.apply(of_file("people.yaml"))
        made.admin.run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        made.admin.apply(
            [each for each in of_file("people-controller.yaml") if each["kind"] != "Deployment"]
        )
        # So every test here is under the policies that bound the controller's account.
        made.admin.apply(of_file("people-admission.yaml"))
        made.admin.apply([tree(quota())])
        yield made


@pytest.fixture(scope="module")
def account(cluster: ControlPlane) -> Connection:
    """The shipped account of the controller, with its rights alone."""
    token = cluster.admin.run("create", "token", ACCOUNT, "-n", SYSTEM, "--duration=4h").strip()
    path = write_kubeconfig(
        cluster.folder / "people.kubeconfig", cluster.server, cluster.authority, token_user(token)
    )
    connection = find_connection(str(path), env={})
    assert connection is not None
    return connection


@pytest.fixture(scope="module")
def admin(cluster: ControlPlane) -> ApiClient:
    """The administrator, when both kinds are served."""
    made = ApiClient("real", cluster.kubeconfig)
    for path in (USERS, GROUPS):
        wait_until("the kind is served", lambda path=path: made.ask("GET", path).status == 200)  # type: ignore[misc]
    return made


@pytest.fixture
def api(admin: ApiClient, account: Connection) -> Iterator[ApiClient]:
    """The administrator, who leaves no user and no group behind."""
    made = admin
    yield made
    for path in (USERS, GROUPS):
        for each in made.ask("GET", path).body["items"]:
            name = each["metadata"]["name"]
            patch(made, f"{path}/{name}", {"metadata": {"finalizers": []}})
            made.ask("DELETE", f"{path}/{name}")
    patch(made, TREE, {"spec": {"root": quota()}})
    asyncio.run(_cleaned(account, made))


TREE = (
    "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees/elasticquotatree"
)


async def _cleaned(account: Connection, api: ApiClient) -> None:
    async with deciding(account):
        await until(lambda: held(api) == set())


def patch(api: ApiClient, path: str, body: Object) -> Any:
    headers = {"Content-Type": "application/merge-patch+json"}
    return api.ask("PATCH", path, body, headers=headers)


def post(api: ApiClient, *objects: Object) -> None:
    for each in objects:
        answer = api.ask("POST", USERS if each["kind"] == "User" else GROUPS, each)
        assert answer.status == 201, answer.message


def held(api: ApiClient) -> set[tuple[str, str]]:
    """Role and subject are checked; (namespace, name) of all that carries the label."""
    found = set()
    for path in (f"{RBAC}/rolebindings", f"{RBAC}/clusterrolebindings"):
        for each in api.ask("GET", path, query=LABELLED).body["items"]:
            meta, owner = each["metadata"], each["metadata"]["labels"]["fairlead.io/user"]
            if each["subjects"] == [{"kind": "ServiceAccount", "name": owner, "namespace": PLACE}]:
                assert meta["name"].endswith(f":{each['roleRef']['name']}")
                found.add((meta.get("namespace", ""), meta["name"]))
    accounts = api.ask("GET", f"/api/v1/namespaces/{PLACE}/serviceaccounts", query=LABELLED)
    return found | {("ServiceAccount", each["metadata"]["name"]) for each in accounts.body["items"]}


def has_account(api: ApiClient, name: str) -> bool:
    """Whether the user's status names its ServiceAccount, which the controller writes last."""
    status = api.ask("GET", f"{USERS}/{name}").body.get("status", {})
    return bool(status.get("serviceAccount"))


def of_researcher(name: str, *spaces: str) -> set[tuple[str, str]]:
    return {
        ("ServiceAccount", name),
        ("", f"{name}:clusterRole:fairlead-researcher-cluster"),
        *((space, f"{name}:{space}:fairlead-researcher") for space in spaces),
    }


def of_admin(name: str) -> set[tuple[str, str]]:
    return {
        *of_researcher(name),
        ("", f"{name}:clusterRole:fairlead-admin"),
        (PLACE, f"{name}:{PLACE}:fairlead-credentials"),
    }


def ready(api: ApiClient, path: str) -> tuple[str, str]:
    status = api.ask("GET", path).body.get("status") or {}
    each = (status.get("conditions") or [{}])[0]
    return each.get("reason", ""), each.get("message", "")


# --- a controller of the test, which ends when the test wants -------------------------------------


class Ended(Exception):
    """The process was killed."""


@contextlib.asynccontextmanager
async def deciding(
    account: Connection, apply: Callable[[KubePeopleApi, PeopleAction], Any] | None = None
) -> AsyncIterator[None]:
    """The decider on the real API server, one call after another, without a Lease."""
    async with KubeApi(account) as api, asyncio.TaskGroup() as tasks:
        people = KubePeopleApi(api, (SYSTEM, PEOPLE_LEASE))
        decider = PeopleDecider(people.work_kinds)
        changed = asyncio.Event()

        def observe(changes: Changes[Any]) -> None:
            decider.observe(changes)
            changed.set()

        async def work() -> None:
            while True:
                if decider.is_rebuilt:
                    for action in list(decider.look(time.time())):
                        sent = people.apply(action) if apply is None else apply(people, action)
                        decider.done(action, await sent, time.time())
                with contextlib.suppress(TimeoutError):  # a call may be due without a change
                    async with asyncio.timeout(0.2):
                        await changed.wait()
                changed.clear()

        running = [tasks.create_task(people.follow(observe)), tasks.create_task(work())]
        try:
            yield
        finally:
            for each in running:
                each.cancel()


@contextlib.asynccontextmanager
async def controlling(account: Connection) -> AsyncIterator[PeopleController]:
    """The controller as it is shipped, with its Lease."""
    async with KubeApi(account) as api:
        people = KubePeopleApi(api, (SYSTEM, PEOPLE_LEASE))
        controller = PeopleController(people, "me")
        task = asyncio.create_task(controller.run())
        try:
            await until(lambda: not controller.unready, 60)
            yield controller
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


# --- definitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (user("bob", userId="ann"), "metadata.name and spec.userId must be equal"),
        (user("default"), "every namespace has a ServiceAccount `default`"),
        (user("bob", role="root"), "supported values"),
        (user("bob", apiRoles=[]), "should have at least 1 items"),
        (user("bob", groups="team"), "must be of type array"),
        (user("x" * 64), "metadata.name: Too long"),
        (user("Bob"), "RFC 1123"),
        (user("bob", password="secret"), 'unknown field "spec.password"'),
        (group("team", "root.a", quotaNames=[]), "should have at least 1 items"),
        (group("team", "root.a", quotaNames=["root.a", "root.b"]), "Too many: 2"),
        (group("team", "root.a", groupName="team_a"), "should match"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_definitions_refuse(admin: ApiClient, obj: Object, why: str) -> None:
    path = USERS if obj["kind"] == "User" else GROUPS
    answer = admin.ask("POST", path, obj, query={"fieldValidation": "Strict", "dryRun": "All"})
    assert answer.status in (400, 422), answer.body
    assert why in answer.message


def test_what_may_not_change_does_not(api: ApiClient) -> None:
    post(api, user("bob"), group("team", "root.a"))
    renamed = patch(api, f"{USERS}/bob", {"spec": {"userId": "eve"}})
    assert "userId may not be changed" in renamed.message
    moved = patch(api, f"{GROUPS}/team", {"spec": {"quotaNames": ["root.b"]}})
    assert "quotaNames may not be changed" in moved.message
    assert patch(api, f"{GROUPS}/team/status", {"status": {"renamedTo": "root.b"}}).status == 200
    other = patch(api, f"{GROUPS}/team", {"spec": {"quotaNames": ["root.c"]}})
    assert "quotaNames may not be changed" in other.message
    assert patch(api, f"{GROUPS}/team", {"spec": {"quotaNames": ["root.b"]}}).status == 200
    shown = api.ask("GET", f"{USERS}/bob").body["spec"]
    assert (shown["deletable"], shown["disabled"]) == (True, False)


def test_the_page_health_finds_that_users_are_served(admin: ApiClient, account: Connection) -> None:
    async def served() -> Any:
        async with KubeApi(account) as api:
            return (await DependencyQuery(api).look()).served

    found = asyncio.run(served())
    versions = admin.ask("GET", "/apis/fairlead.io").body["versions"]
    assert found["users.fairlead.io"] == tuple(each["version"] for each in versions)


# --- what bounds the controller's account ---------------------------------------------------------


def test_the_account_writes_what_the_controller_writes_and_nothing_else(api: ApiClient) -> None:
    """As dry runs: the API server asks its policies, and stores nothing."""
    for path, each in BEFORE:
        assert api.ask("POST", path, each).status == 201
    post(api, user("bob"), group("team", "root.a"))
    renamed = {"status": {"renamedTo": "root.new"}}
    assert patch(api, f"{GROUPS}/team/status", renamed).status == 200
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated")
    acting = api.as_user(f"system:serviceaccount:{SYSTEM}:{ACCOUNT}", *groups)
    refused = {each.path.rpartition("/")[0]: each for each in WRITES.values() if each.refused}
    for each in refused.values():
        wait_until("the policy is in force", lambda each=each: _tried(acting, each).status == 403)  # type: ignore[misc]
    wrong = {}
    for name, write in WRITES.items():
        answer = _tried(acting, write)
        is_by_policy = "ValidatingAdmissionPolicy 'fairlead-people-" in answer.message
        if write.refused:
            is_right = answer.status == 403 and is_by_policy and write.refused in answer.message
        else:
            is_right = answer.status in (200, 201)
        if not is_right:
            wrong[name] = (answer.status, answer.message)
    for path, each in BEFORE:
        assert api.ask("DELETE", f"{path}/{each['metadata']['name']}").status == 200
    assert wrong == {}


def _tried(acting: ApiClient, write: Write) -> Any:
    kind = {"PATCH": {"Content-Type": "application/merge-patch+json"}}
    return acting.ask(
        write.verb,
        write.path,
        write.body or None,
        query={"dryRun": "All"},
        headers=kind.get(write.verb, {}),
    )


# --- rights: each cell ----------------------------------------------------------------------------

WORK = (
    *("pods", "services", "configmaps", "persistentvolumeclaims"),
    *("deployments.apps", "replicasets.apps", "statefulsets.apps"),
    *("jobs.batch", "cronjobs.batch"),
    *("tfjobs.kubeflow.org", "pytorchjobs.kubeflow.org", "mpijobs.kubeflow.org"),
    *("notebooks.kubeflow.org", "rayjobs.ray.io", "crons.apps.kubedl.io"),
    *("podgroups.scheduling.x-k8s.io", "podgroups.scheduling.volcano.sh"),
)
READ, CHANGE = ("get", "list", "watch"), ("create", "patch", "update", "delete")
USE = ("get pods/log", *(f"create pods/{each}" for each in ("exec", "attach", "portforward")))
FLUID = tuple(
    f"{each}.data.fluid.io"
    for each in ("datasets", "dataloads", "alluxioruntimes", "jindoruntimes", "thinruntimes")
)
OBSERVED = ("events", "poddisruptionbudgets.policy", "resourcequotas", *FLUID)
SHARED = (
    *("nodes", "priorityclasses.scheduling.k8s.io", "storageclasses.storage.k8s.io"),
    "elasticquotatrees.scheduling.sigs.k8s.io",
)
ADMINISTERED = (
    *("users.fairlead.io", "usergroups.fairlead.io", "elasticquotatrees.scheduling.sigs.k8s.io"),
    *("namespaces", "persistentvolumes", "poddisruptionbudgets.policy", *FLUID),
)
OVERSEEN = (
    *(f"{each}.rbac.authorization.k8s.io" for each in ("roles", "clusterroles", "rolebindings")),
    *("customresourcedefinitions.apiextensions.k8s.io", "daemonsets.apps"),
)


def each_of(verbs: tuple[str, ...], resources: tuple[str, ...]) -> set[str]:
    return {f"{verb} {resource}" for verb in verbs for resource in resources}


RESEARCHER_MAY = {
    *each_of((*READ, *CHANGE), (*WORK, "secrets")),
    *USE,
    *each_of(READ, OBSERVED),
}
"""In the own namespaces."""
EVERY_USER_MAY = each_of(READ, SHARED)
"""Cluster-wide."""
ADMIN_MAY = {
    *each_of((*READ, *CHANGE), (*WORK, *ADMINISTERED)),
    *USE,
    *each_of(READ, (*OVERSEEN, *OBSERVED)),
    "patch nodes",
    *EVERY_USER_MAY,
}
"""Everywhere."""
NO_RESEARCHER_MAY = {
    *each_of((*READ, *CHANGE), ("daemonsets.apps", "persistentvolumes", "users.fairlead.io")),
    *each_of(CHANGE, ("poddisruptionbudgets.policy", "resourcequotas", "nodes", "namespaces")),
    *each_of(CHANGE, FLUID),
    *("patch pods/status", "create pods/eviction", "get nodes/proxy", "get nodes/log"),
    *("get services/proxy", "create serviceaccounts/token", "impersonate users"),
    *each_of(CHANGE, ("rolebindings.rbac.authorization.k8s.io", SHARED[-1])),
}
NO_ADMIN_MAY = {
    *each_of((*READ, *CHANGE), ("secrets",)),
    *each_of(CHANGE, ("clusterroles.rbac.authorization.k8s.io", "daemonsets.apps")),
    *each_of(("create", "update", "delete"), ("nodes",)),
    *("patch pods/status", "create pods/eviction", "create serviceaccounts/token"),
    *("impersonate users", "bind clusterroles.rbac.authorization.k8s.io"),
}


def allowed(api: ApiClient, name: str, space: str, asked: set[str]) -> set[str]:
    """What the API server allows the user, of what is asked."""
    found = set()
    for each in asked:
        verb, resource = each.split()
        plural, _, rest = resource.partition(".")
        plural, _, subresource = plural.partition("/")
        if ask_for(
            api,
            f"system:serviceaccount:{PLACE}:{name}",
            verb,
            plural,
            space,
            ("system:serviceaccounts", f"system:serviceaccounts:{PLACE}", "system:authenticated"),
            group=rest,
            subresource=subresource,
        )["allowed"]:
            found.add(each)
    return found


def test_each_cell_of_the_table_of_rights(api: ApiClient, account: Connection) -> None:
    async def story() -> None:
        post(api, group("team-a", "root.a"), user("bob", "team-a"), user("ann", role="admin"))
        async with controlling(account):
            wanted = {*of_researcher("bob", "namespace1"), *of_admin("ann")}
            await until(lambda: held(api) == wanted)

    asyncio.run(story())
    asked = RESEARCHER_MAY | EVERY_USER_MAY | NO_RESEARCHER_MAY | ADMIN_MAY | NO_ADMIN_MAY
    shared = EVERY_USER_MAY
    assert allowed(api, "bob", "namespace1", asked) == RESEARCHER_MAY | shared
    assert allowed(api, "bob", "namespace2", asked) == shared
    assert allowed(api, "bob", PLACE, asked) == shared
    assert allowed(api, "bob", "", asked) == shared
    assert allowed(api, "ann", "namespace2", asked) == ADMIN_MAY
    assert allowed(api, "ann", "", asked) == ADMIN_MAY
    credentials = {
        *each_of(("get", "list", "create", "delete", "patch"), ("secrets",)),
        "create serviceaccounts/token",
        "create rolebindings.rbac.authorization.k8s.io",
    }
    assert allowed(api, "ann", PLACE, asked) == ADMIN_MAY | credentials


class Desk:
    """Where commands are typed: the real kubectl and `fairlead`, with one kubeconfig."""

    def __init__(self, cluster: ControlPlane, kubeconfig: Path) -> None:
        self._env = environment(cluster.folder, KUBECONFIG=str(kubeconfig))
        self._kubectl = Kubectl(program("kubectl"), kubeconfig, cluster.folder)

    async def fairlead(self, *words: str) -> str:
        ended = await asyncio.to_thread(run_main, "fairlead", words, self._env)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    async def kubectl(self, words: str) -> str:
        return await asyncio.to_thread(self._kubectl.run, *words.split())


def test_from_a_group_to_a_kubeconfig_and_back(
    cluster: ControlPlane, api: ApiClient, account: Connection
) -> None:
    """All by commands. The second administrator, who is a user, has the rights for them, too."""

    async def story() -> None:
        async with controlling(account):
            root = Desk(cluster, cluster.kubeconfig)

            async def let_in(desk: Desk, name: str, *flags: str) -> tuple[Desk, str]:
                await desk.fairlead("user", "create", name, *flags)
                ident = name.lower()
                await until(lambda: ready(api, f"{USERS}/{ident}")[0] == "Bound")
                text = await desk.fairlead("kubeconfig", "create", ident)
                path = cluster.folder / f"{ident}.kubeconfig"
                path.write_text(text, encoding="utf-8")
                token: str = yaml.safe_load(text)["users"][0]["user"]["token"]
                return Desk(cluster, path), token

            await root.fairlead("group", "create", "teamA", "--leaf", "root.a")
            ann, _ = await let_in(root, "Ann", "--role", "admin")
            began = time.monotonic()
            bob, token = await let_in(ann, "Bob", "--group", "teamA")
            made = time.monotonic() - began
            # without -n: the namespace of the context is that of the leaf
            await bob.kubectl("create configmap mine --from-literal=a=b")
            for words, why in (
                ("create configmap other -n namespace2", 'cannot create resource "configmaps"'),
                ("get secrets -A", 'cannot list resource "secrets"'),
                ("get users -n kube-ai", 'cannot list resource "users"'),
            ):
                with pytest.raises(KubectlError, match=why):
                    await bob.kubectl(words)
            with pytest.raises(KubectlError, match='cannot list resource "secrets"'):
                await ann.kubectl("get secrets -n namespace1")
            # one credential is revoked, and another goes on
            other = token_of(api, PLACE, "bob")
            maps = "/api/v1/namespaces/namespace1/configmaps"
            stranger, second = api.as_stranger(token), api.as_stranger(other)
            listed = json.loads(await ann.fairlead("kubeconfig", "list", "bob", "-o", "json"))
            assert listed[0]["issuedBy"] == f"system:serviceaccount:{PLACE}:ann"
            began = time.monotonic()
            await ann.fairlead("kubeconfig", "delete", listed[0]["name"])
            await until(lambda: stranger.ask("GET", maps).status == 401, 60)
            revoked = time.monotonic() - began
            assert second.ask("GET", maps).status == 200
            # disabled: no right, then no token
            began = time.monotonic()
            await ann.fairlead("user", "update", "bob", "--disable")
            written = time.monotonic()
            await until(lambda: second.ask("GET", maps).status in (401, 403))
            gone = time.monotonic() - written
            await until(lambda: second.ask("GET", "/version").status == 401, 60)
            await until(lambda: ready(api, f"{USERS}/bob")[0] == "Disabled")
            await ann.fairlead("user", "delete", "bob")
            await until(lambda: api.ask("GET", f"{USERS}/bob").status == 404)
            print(f"let in {made:.1f} s, revoked {revoked:.1f} s, rights gone {gone:.2f} s")
            assert gone < 10, "2 s on a machine that is not busy"

    asyncio.run(story())
    cluster.admin.run("delete", "configmap", "mine", "-n", "namespace1")


def test_what_a_user_uses_is_in_the_users_status(api: ApiClient, account: Connection) -> None:
    """The quota controller writes the status of the tree; here the test does."""

    async def story() -> None:
        post(api, group("team-a", "root.a"), user("bob", "team-a"))
        async with controlling(account):
            await until(lambda: ready(api, f"{USERS}/bob")[0] == "Bound")
            use = [{"leaf": "root.a", "user": "bob", "used": {"cpu": "1500m"}}]
            answer = patch(api, f"{TREE}/status", {"status": {"userUse": use}})
            assert answer.status == 200, answer.message
            wanted = [{"leaf": "root.a", "resources": {"cpu": "1500m"}}]
            await until(lambda: api.ask("GET", f"{USERS}/bob").body["status"]["used"] == wanted)
            patch(api, f"{TREE}/status", {"status": {"userUse": []}})
            await until(lambda: api.ask("GET", f"{USERS}/bob").body["status"]["used"] == [])

    asyncio.run(story())


# --- tokens that are renewed ----------------------------------------------------------------------


def changed_file(file: Path, **fields: Any) -> None:
    kept = json.loads(file.read_text(encoding="utf-8"))
    kept["credential"].update(fields)
    file.write_text(json.dumps(kept), encoding="utf-8")


def kept_in(file: Path) -> Object:
    found: Object = json.loads(file.read_text(encoding="utf-8"))["credential"]
    return found


def test_a_token_is_renewed_until_it_is_revoked(
    cluster: ControlPlane, api: ApiClient, account: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kubectl runs `fairlead login`. A token that is renewed ends with its Secret, too, because the
    API server itself refuses every other token to its user.
    """
    programs = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    file, config = cluster.folder / "bob.json", cluster.folder / "bob-exec.kubeconfig"
    maps = "/api/v1/namespaces/namespace1/configmaps"
    own = f"/api/v1/namespaces/{PLACE}/serviceaccounts/bob/token"

    async def story() -> None:
        post(api, group("team-a", "root.a"), user("bob", "team-a"), user("ann", role="admin"))
        async with controlling(account):
            wanted = {*of_researcher("bob", "namespace1"), *of_admin("ann")}
            await until(lambda: held(api) == wanted)
            await until(lambda: all(has_account(api, each) for each in ("bob", "ann")))
            path = write_kubeconfig(
                cluster.folder / "ann.kubeconfig",
                cluster.server,
                cluster.authority,
                token_user(token_of(api, PLACE, "ann")),
            )
            ann, bob = Desk(cluster, path), Desk(cluster, config)
            flags = ("--exec", str(file), "--lifetime", "10m")
            text = await ann.fairlead("kubeconfig", "create", "bob", *flags)
            config.write_text(text, encoding="utf-8")
            first = kept_in(file)
            assert file.stat().st_mode & 0o777 == 0o600
            assert first["token"] not in text
            await bob.kubectl("get configmaps")
            assert kept_in(file) == first, "more than half of its lifetime is left"
            # it is renewed when half of its lifetime is over
            changed_file(file, expiresAt=time.time() + 299)
            await bob.kubectl("get configmaps")
            second = kept_in(file)
            assert second["token"] != first["token"]
            assert second["expiresAt"] > time.time() + 500
            assert file.stat().st_mode & 0o777 == 0o600
            # nothing else can be asked for with the right to renew
            holder = api.as_stranger(second["token"])
            bound = {"apiVersion": "v1", "kind": "Secret", "name": second["secret"]}
            for path, spec, why in (
                (own, {}, "is bound to the Secret of its credential"),
                (own, {"boundObjectRef": bound}, "is bound to the Secret of its credential"),
                (
                    own,
                    {
                        "boundObjectRef": {**bound, "uid": second["secretUid"]},
                        "expirationSeconds": 8 * 86400,
                    },
                    "lives 7 days at most",
                ),
                (own.replace("bob", "ann"), {}, 'cannot create resource "serviceaccounts/token"'),
            ):
                refused = holder.ask("POST", path, {"spec": spec})
                assert refused.status == 403, refused.body
                assert why in refused.message
            other = {"boundObjectRef": {**bound, "uid": "0c3f8d6e-0000-4000-8000-000000000000"}}
            assert holder.ask("POST", own, {"spec": other}).status == 409
            assert holder.ask("GET", f"/api/v1/namespaces/{PLACE}/secrets").status == 403
            listed = json.loads(await ann.fairlead("kubeconfig", "list", "bob", "-o", "json"))
            assert [each["name"] for each in listed] == [second["secret"]]
            # a token that has ended is not renewed
            over = {**second, "token": expired(cluster, second["token"])}
            changed_file(file, token=over["token"], expiresAt=time.time() - 1)
            with pytest.raises(KubectlError, match="does not work any more: its token has expired"):
                await bob.kubectl("get configmaps")
            changed_file(file, **second)
            await bob.kubectl("get configmaps")
            # with the Secret each of its tokens ends
            await ann.fairlead("kubeconfig", "delete", second["secret"])
            for token in (first["token"], second["token"]):
                stranger = api.as_stranger(token)
                await until(lambda stranger=stranger: stranger.ask("GET", maps).status == 401, 60)
            with pytest.raises(KubectlError, match=r"Unauthorized|be logged in"):
                await bob.kubectl("get configmaps")
            changed_file(file, expiresAt=time.time() + 299)
            with pytest.raises(KubectlError, match="it was revoked"):
                await bob.kubectl("get configmaps")
            # without the policy no such credential is issued
            policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
            kept = api.ask("GET", f"{policy}/fairlead-renewal").body
            api.ask("DELETE", f"{policy}/fairlead-renewal")
            try:
                for number in range(50):  # the API server takes a moment to drop a policy
                    another = cluster.folder / f"no-{number}.json"
                    ended = await asyncio.to_thread(
                        run_main,
                        "fairlead",
                        ("kubeconfig", "create", "bob", "--exec", str(another)),
                        environment(cluster.folder, KUBECONFIG=str(cluster.kubeconfig)),
                    )
                    if ended.returncode:
                        break
                    assert number < 49
                assert "does not have the policy fairlead-renewal" in ended.stderr
                assert not another.exists()
            finally:
                kept["metadata"] = {
                    "name": "fairlead-renewal",
                    "labels": kept["metadata"]["labels"],
                }
                assert api.ask("POST", policy, kept).status == 201

    asyncio.run(story())


def expired(cluster: ControlPlane, token: str) -> str:
    """The token, signed by the API server's own key as one that ended an hour ago."""
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims["exp"] = int(time.time()) - 3600
    signed = b".".join((head.encode(), encoded(json.dumps(claims).encode())))
    key = serialization.load_pem_private_key(
        (cluster.folder / "service-accounts.key").read_bytes(), None
    )
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    pair = decode_dss_signature(key.sign(signed, ec.ECDSA(hashes.SHA256())))
    signature = b"".join(each.to_bytes(32, "big") for each in pair)
    return b".".join((signed, encoded(signature))).decode()


def encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


# --- convergence ----------------------------------------------------------------------------------

END = {
    *of_researcher("bob", "namespace1", "namespace2"),
    *of_researcher("eve", "namespace2"),
    *of_admin("ann"),
}


def begin(api: ApiClient) -> None:
    post(
        api,
        group("team-a", "root.a"),
        group("team-b", "root.b"),
        user("bob", "team-a", "team-b"),
        user("eve", "team-b"),
        user("ann", role="admin"),
    )


def settled(api: ApiClient) -> bool:
    names = ("bob", "eve", "ann")
    return held(api) == END and all(ready(api, f"{USERS}/{each}")[0] == "Bound" for each in names)


def test_a_controller_that_is_ended_at_every_call_ends_in_the_same_state(
    api: ApiClient, account: Connection
) -> None:
    """Each run makes one call more than was needed to see the one before; half of the last calls
    were carried out.
    """
    calls = 0

    def one_call(carried_out: bool) -> Callable[[KubePeopleApi, PeopleAction], Any]:
        async def apply(people: KubePeopleApi, action: PeopleAction) -> Outcome:
            nonlocal calls
            calls += 1
            if carried_out:
                await people.apply(action)
            raise Ended

        return apply

    async def story() -> None:
        begin(api)
        for number in range(30):
            with contextlib.suppress(ExceptionGroup, TimeoutError):
                async with deciding(account, one_call(number % 2 == 0)):
                    await until(lambda: settled(api), 5)
                    return
        async with deciding(account):
            await until(lambda: settled(api), 60)

    asyncio.run(story())
    assert calls >= 10
    assert settled(api)


def test_failing_calls_and_other_clients_change_nothing_of_the_end(
    api: ApiClient, account: Connection
) -> None:
    """A tenth of the calls has no answer, half of these were carried out; meanwhile another client
    deletes and changes what the controller makes.
    """
    rng = random.Random(4)

    async def apply(people: KubePeopleApi, action: PeopleAction) -> Outcome:
        if rng.random() >= 0.1:
            return await people.apply(action)
        if rng.random() < 0.5:
            await people.apply(action)
        return Outcome(Result.UNKNOWN, "no answer")

    async def story() -> None:
        begin(api)
        async with deciding(account, apply):
            for _ in range(3):
                await until(lambda: settled(api), 60)
                place = f"{RBAC}/namespaces/namespace2/rolebindings"
                api.ask("DELETE", f"{place}/eve:namespace2:fairlead-researcher")
                stolen = {"subjects": [{"kind": "User", "name": "mallory"}]}
                patch(api, f"{place}/bob:namespace2:fairlead-researcher", stolen)
                bare = {"metadata": {"labels": {"fairlead.io/user": None}}}
                admins = f"{RBAC}/clusterrolebindings/ann:clusterRole:fairlead-admin"
                patch(api, admins, bare)
                other = f"{RBAC}/namespaces/namespace1/rolebindings"
                patch(api, f"{other}/bob:namespace1:fairlead-researcher", bare)
                api.ask("DELETE", f"/api/v1/namespaces/{PLACE}/serviceaccounts/bob")
                surplus = {
                    "metadata": {
                        "name": "eve:namespace1:fairlead-researcher",
                        "labels": {"fairlead.io/user": "eve"},
                    },
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "ClusterRole",
                        "name": "fairlead-researcher",
                    },
                    "subjects": [{"kind": "ServiceAccount", "name": "eve", "namespace": PLACE}],
                }
                api.ask("POST", f"{RBAC}/namespaces/namespace1/rolebindings", surplus)
            await until(lambda: settled(api), 60)

    asyncio.run(story())


def test_deleting_renaming_and_refusals(api: ApiClient, account: Connection) -> None:
    async def story() -> None:
        begin(api)
        async with controlling(account):
            await until(lambda: settled(api), 60)
            # a leaf that is renamed takes its group along
            patch(api, TREE, {"spec": {"root": quota("renamed")}})
            await until(
                lambda: (
                    api.ask("GET", f"{GROUPS}/team-a").body["spec"]["quotaNames"]
                    == ["root.renamed"]
                )
            )
            assert held(api) == END
            # a role that the controller may not bind
            patch(api, f"{GROUPS}/team-b", {"spec": {"defaultRoles": ["cluster-admin"]}})
            await until(lambda: ready(api, f"{USERS}/eve")[0] == "CallRefused")
            assert (
                "attempting to grant RBAC permissions not currently held"
                in (ready(api, f"{USERS}/eve")[1])
            )
            patch(api, f"{GROUPS}/team-b", {"spec": {"defaultRoles": []}})
            await until(lambda: settled(api), 60)
            # a second group on a taken leaf
            post(api, group("late", "root.b"))
            await until(lambda: ready(api, f"{GROUPS}/late")[0] == "LeafAlreadyBound")
            # a user with a pod stays until the pod has ended
            pod = {
                "metadata": {"name": "work", "labels": {"arena.kubeflow.org/console-user": "bob"}},
                "spec": {
                    "containers": [{"name": "a", "image": "a:1"}],
                    "schedulingGates": [{"name": "example.com/waits"}],
                },
            }
            pods = "/api/v1/namespaces/namespace1/pods"
            assert api.ask("POST", pods, pod).status == 201
            api.ask("DELETE", f"{USERS}/bob")
            await until(lambda: ready(api, f"{USERS}/bob")[0] == "DeletionBlocked")
            assert ready(api, f"{USERS}/bob")[1] == "bob has 1 unfinished pod in namespace1"
            assert held(api) == END
            api.ask("DELETE", f"{pods}/work")
            await until(lambda: api.ask("GET", f"{USERS}/bob").status == 404)
            assert not {name for _, name in held(api) if name.startswith("bob")}

    asyncio.run(story())


# --- two at the same moment -----------------------------------------------------------------------


def test_of_two_groups_created_at_once_on_one_leaf_one_gives_rights(
    api: ApiClient, account: Connection
) -> None:
    """No webhook stands in the way here, as for two requests that each pass it."""
    names = ("team-x", "team-y")

    async def story() -> None:
        post(api, user("bob", "team-x"), user("eve", "team-y"))
        async with controlling(account):
            for _ in range(3):
                made = [asyncio.to_thread(post, api, group(each, "root.a")) for each in names]
                await asyncio.gather(*made)
                await until(lambda: leaf_reasons() == ["Bound", "LeafAlreadyBound"], 60)
                first, second = sorted(names, key=lambda each: reason_of(each) != "Bound")
                message = ready(api, f"{GROUPS}/{second}")[1]
                assert message == f"the leaf root.a belongs to the group {first}"
                winner, loser = ("bob", "eve") if first == "team-x" else ("eve", "bob")
                with_rights = of_researcher(winner, "namespace1") | of_researcher(loser)
                await until(lambda wanted=with_rights: held(api) == wanted, 60)  # type: ignore[misc]
                # The other one has the leaf as soon as it is free.
                assert api.ask("DELETE", f"{GROUPS}/{first}").status == 200
                await until(lambda each=second: reason_of(each) == "Bound", 60)  # type: ignore[misc]
                moved = of_researcher(loser, "namespace1") | of_researcher(winner)
                await until(lambda wanted=moved: held(api) == wanted, 60)  # type: ignore[misc]
                assert api.ask("DELETE", f"{GROUPS}/{second}").status == 200

    def reason_of(name: str) -> str:
        return ready(api, f"{GROUPS}/{name}")[0]

    def leaf_reasons() -> list[str]:
        return sorted(reason_of(each) for each in names)

    asyncio.run(story())


def test_of_two_users_created_at_once_with_one_id_one_exists(
    cluster: ControlPlane, api: ApiClient
) -> None:
    """`B_ob` and `B@ob` make one id; the second is refused, and changes nothing of the first."""
    desk = environment(cluster.folder, KUBECONFIG=str(cluster.kubeconfig))
    post(api, group("team-a", "root.a"))

    async def create(name: str) -> Any:
        words = ("user", "create", name, "--group", "team-a")
        return await asyncio.to_thread(
            subprocess.run,
            (*FAIRLEAD, *words),
            env=desk,
            capture_output=True,
            text=True,
            timeout=60,
        )

    async def story() -> None:
        names = ("B_ob", "B@ob")
        ended = await asyncio.gather(*(create(each) for each in names))
        made = [name for name, each in zip(names, ended, strict=True) if each.returncode == 0]
        (refused,) = (each.stderr for each in ended if each.returncode != 0)
        assert len(made) == 1, ended
        assert "b-ob" in refused and ("already exists" in refused or "another user" in refused)
        assert api.ask("GET", f"{USERS}/b-ob").body["spec"]["userName"] == made[0]

    asyncio.run(story())


# --- after all tests above ------------------------------------------------------------------------

BOUND = {
    f"bind clusterroles.rbac.authorization.k8s.io/{role}"
    for role in (
        "fairlead-researcher",
        "fairlead-researcher-cluster",
        "fairlead-admin",
        "fairlead-credentials",
    )
}
"""No request has the verb `bind`: the API server asks for it when a binding is created."""


def test_each_right_of_the_account_was_used(cluster: ControlPlane) -> None:
    """Its requests are in the audit log. Rights about kinds that the cluster does not serve are
    left out; `tests/kube/test_each_right.py` takes away each `bind`.
    """
    granted, not_used = unused(cluster, ACCOUNT, SYSTEM)
    assert granted >= BOUND
    assert not_used == BOUND
