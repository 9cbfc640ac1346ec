"""Users and groups on a real API server: how fast rights follow what an administrator writes."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.contracts.api_client import ApiClient
from tests.contracts.rights import token_of
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.objects import namespace
from tests.kube.programs import program
from tests.kube.quota_line import install_crd, tree
from tests.kube.servers import FAIRLEAD, Server, environment, running
from tests.waiting import wait_until

from bench.support.options import options
from bench.support.processes import run

SYSTEM, PLACE, SPACE, ROLE = "fairlead-system", "kube-ai", "namespace1", "fairlead-credentials"
PEOPLE: Final = f"/apis/fairlead.io/v1/namespaces/{PLACE}"
BINDINGS: Final = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/rolebindings"
GROUP_AIM, USER_AIM_SECONDS = 1.5, 1.0
Object = dict[str, Any]


def measure_people() -> None:
    """A changed group of 200 users until all bindings are right, against kubectl; a new user.

        python -m bench people [--users 200] [--runs 5]

    On a real API server, with the people controller as it is shipped. A group gets one more role,
    so that each user gets one more RoleBinding; the peer is `kubectl apply --server-side` of the
    same bindings, without the controller's label. The runs take turns. For a new user: from the
    User object to the first request that the user's token makes in the namespace.
    """
    parser = options(measure_people)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    with _cluster() as cluster, tempfile.TemporaryDirectory() as home:
        api = ApiClient("real", cluster.kubeconfig)
        names = [f"user-{number:04}" for number in range(args.users)]
        for each in (_group(), *map(_user, names)):
            plural = "users" if each["kind"] == "User" else "usergroups"
            assert api.post(f"{PEOPLE}/{plural}", each).status == 201
        _wait(lambda: _count(api, "fairlead-researcher") == args.users)
        file = Path(home) / "bindings.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": _peers(names)}))
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": home}
        kubectl = [str(program("kubectl")), "apply", "--server-side", "-f", str(file)]
        fairlead, theirs, made = list[float](), list[float](), list[float]()
        for number in range(args.runs + 1):  # the first of each warms the server
            took = _changed(api, [ROLE], args.users)
            back = _changed(api, [], 0)
            peer = run(kubectl, env).wall
            cluster.admin.run("delete", "-f", str(file), "--wait=false")
            fresh = _let_in(api, f"new-{number}")
            print(
                f"group {took:.2f} s (withdrawn {back:.2f}), kubectl {peer:.2f} s, "
                f"user {fresh:.2f} s; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            if number:
                fairlead.append(took)
                theirs.append(peer)
                made.append(fresh)
    group, peer, user = map(statistics.median, (fairlead, theirs, made))
    print(f"\n{args.users} users: {group:.2f} s; kubectl apply: {peer:.2f} s")
    print(f"aims: {group / peer:.2f} x kubectl (<= {GROUP_AIM})")
    print(f"user {user:.2f} s (<= {USER_AIM_SECONDS:.0f})")


@contextmanager
def _cluster() -> Iterator[ControlPlane]:
    """With definitions, tree, and a working controller under its own account."""
    with running_control_plane() as cluster:
        install_crd(cluster)
        cluster.admin.apply([namespace(each) for each in (SYSTEM, SPACE)])
        cluster.admin.apply(of_file("people.yaml"))
        cluster.admin.run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        left = ("Deployment", "PodDisruptionBudget", "NetworkPolicy")
        controller = of_file("people-controller.yaml")
        cluster.admin.apply([each for each in controller if each["kind"] not in left])
        leaf = {"name": "root.a", "min": {"cpu": 1}, "namespaces": [SPACE]}
        root = {"name": "root", "min": {"cpu": 4}, "max": {"cpu": 4}, "children": [leaf]}
        cluster.admin.apply([tree(root)])
        account = ("create", "token", "fairlead-people-controller", "-n", SYSTEM)
        path = write_kubeconfig(
            cluster.folder / "people.kubeconfig",
            cluster.server,
            cluster.authority,
            token_user(cluster.admin.run(*account, "--duration=4h").strip()),
        )
        argv = [*FAIRLEAD, "people-controller", "--listen=127.0.0.1:0", f"--kubeconfig={path}"]
        process = Component("people", argv, cluster.logs / "people.log", environment())
        process.start()
        try:
            yield cluster
        finally:
            process.stop()


def _group() -> Object:
    spec = {"groupName": "team", "quotaNames": ["root.a"]}
    return _object("UserGroup", "team", spec)


def _user(name: str) -> Object:
    spec = {"userName": name, "userId": name, "apiRoles": ["researcher"], "groups": ["team"]}
    return _object("User", name, spec)


def _object(kind: str, name: str, spec: Object) -> Object:
    meta = {"name": name, "namespace": PLACE}
    return {"apiVersion": "fairlead.io/v1", "kind": kind, "metadata": meta, "spec": spec}


def _peers(names: list[str]) -> list[Object]:
    """The bindings that the controller makes for the role, under other names."""
    api = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"peer:{name}:{ROLE}", "namespace": SPACE},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": PLACE}],
        }
        for name in names
    ]


def _changed(api: ApiClient, roles: list[str], wanted: int) -> float:
    """Seconds from the change of the group until the role's bindings are as wanted."""
    began = time.perf_counter()
    answer = api.patch(f"{PEOPLE}/usergroups/team", {"spec": {"defaultRoles": roles}})
    assert answer.status == 200, answer.message
    _wait(lambda: _count(api, ROLE) == wanted)
    return time.perf_counter() - began


def _count(api: ApiClient, role: str) -> int:
    """The number of bindings of users to this role in the namespace."""
    items = api.ask("GET", BINDINGS, query={"labelSelector": "fairlead.io/user"}).body["items"]
    return sum(each["roleRef"]["name"] == role for each in items)


def _let_in(api: ApiClient, name: str) -> float:
    """Seconds from the User object to the first request of the user that is answered."""
    began = time.perf_counter()
    assert api.post(f"{PEOPLE}/users", _user(name)).status == 201
    account = f"/api/v1/namespaces/{PLACE}/serviceaccounts/{name}"
    _wait(lambda: api.get(account).status == 200)
    user = api.as_stranger(token_of(api, PLACE, name))
    _wait(lambda: user.get(f"/api/v1/namespaces/{SPACE}/pods").status == 200)
    took = time.perf_counter() - began
    api.delete(f"{PEOPLE}/users/{name}")
    _wait(lambda: api.get(f"{PEOPLE}/users/{name}").status == 404)
    return took


def _wait(is_so: Callable[[], bool]) -> None:
    wait_until("the rights are as wanted", is_so, 60, 0.02)


SIGN_IN_AIM_SECONDS: Final = 0.15


def measure_sign_in() -> None:
    """Signing in at the console with a token until the answer, and a request of one signed in.

        python -m bench sign_in [--runs 200]

    On a real API server, with SQLite. Each sign-in asks the API server about the token, and writes
    two rows to the store. The request is `/me`, beside that of a console without sign-in.
    """
    parser = options(measure_sign_in)
    parser.add_argument("--runs", type=int, default=200)
    args = parser.parse_args()
    with running_control_plane() as cluster:
        install_crd(cluster)
        cluster.admin.apply(of_file("people.yaml"))
        cluster.admin.run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        cluster.admin.apply([{**_user("bob"), "spec": {**_user("bob")["spec"], "groups": []}}])
        cluster.admin.run("create", "serviceaccount", "bob", "-n", PLACE)
        status = {"status": {"serviceAccount": {"name": "bob", "namespace": PLACE}}}
        cluster.admin.run(
            *("patch", "users.fairlead.io", "bob", "-n", PLACE, "--type=merge"),
            *("--subresource=status", "-p", json.dumps(status)),
        )
        token = cluster.admin.run("create", "token", "bob", "-n", PLACE).strip()
        flags = (f"--kubeconfig={cluster.kubeconfig}", "--gpu-source=none")
        signing = (
            *("--sign-in=on", f"--store=sqlite:///{cluster.folder}/store.sqlite"),
            f"--sign-in-key-file={cluster.kubeconfig}",
        )
        log = cluster.folder / "console.log"
        with (
            running("console", *flags, *signing, log=log) as guarded,
            running("console", *flags, log=log) as open_one,
        ):
            order = {"way": "token", "secret": token}
            _post(guarded, order)
            began = [_timed(lambda: _post(guarded, order)) for _ in range(args.runs)]
            cookie = _post(guarded, order)
            asked, free = list[float](), list[float]()
            for _ in range(args.runs):  # in turns
                asked.append(_timed(lambda: _me(guarded, cookie)))
                free.append(_timed(lambda: _me(open_one, "")))
    print(f"load {os.getloadavg()[0]:.1f}")
    for name, times in (("sign-in", began), ("/me signed in", asked), ("/me without", free)):
        print(
            f"{name}: median {1000 * statistics.median(times):.1f} ms, p95 {_p95_ms(times):.1f} ms"
        )
    print(f"aim: sign-in p95 {_p95_ms(began):.0f} ms (< {1000 * SIGN_IN_AIM_SECONDS:.0f})")


def _p95_ms(times: list[float]) -> float:
    return 1000 * statistics.quantiles(times, n=20)[-1]


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _post(server: Server, order: Object) -> str:
    """Sign in; the cookie."""
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(
        f"{server.url}/api/v1/signin", json.dumps(order).encode(), headers
    )
    with urllib.request.urlopen(asked, timeout=30) as found:
        return str(found.headers["Set-Cookie"]).partition(";")[0]


def _me(server: Server, cookie: str) -> None:
    headers = {"Cookie": cookie} if cookie else {}
    asked = urllib.request.Request(f"{server.url}/api/v1/me", headers=headers)
    urllib.request.urlopen(asked, timeout=30).read()
