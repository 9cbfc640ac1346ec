"""A team on a real control plane: users, groups and quota, and the programs that let them in, each
with the rights of its shipped account: the console with sign-in, the people controller, the quota
controller.

Containers run nowhere; a server of the test plays the kubelet of which the API server asks logs.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

import yaml
from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.oidc_provider import PlainBrowser
from tests.kube.operators import running_mpi_operator
from tests.kube.programs import program
from tests.kube.quota_line import SYSTEM, big_node, enforce, install, running_controller
from tests.kube.quota_truth import Watched
from tests.kube.servers import FAIRLEAD, READY_SECONDS, Server, environment
from tests.waiting import HANG_SECONDS, wait_until

Object = dict[str, Any]
PLACE: Final = "kube-ai"
CONSOLE: Final = "fairlead-reader"
PEOPLE: Final = "fairlead-people-controller"
NODE: Final = "only"


def account_of(name: str) -> str:
    return f"system:serviceaccount:{PLACE}:{name}"


class Visitor:
    """A user who signed in at the console with a token, in a browser."""

    def __init__(self, url: str, token: str) -> None:
        self._api = f"{url}/api/v1"
        self._browser = PlainBrowser()
        self.signed = self._browser.post(f"{self._api}/signin", {"way": "token", "secret": token})
        self._csrf = ""

    def ask(
        self, path: str, method: str = "GET", body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and JSON (or text) of the answer."""
        if method != "GET" and not self._csrf:
            self._csrf = self.ask("/me")[1]["csrf"]
        data = None if body is None else json.dumps(body).encode()
        sent = {} if body is None else {"Content_Type": "application/json"}
        if method != "GET":
            sent["X_Fairlead_Csrf"] = self._csrf
        found = self._browser.send(f"{self._api}{path}", method, data, **sent, **headers)
        try:
            return found.status, json.loads(found.body)
        except ValueError:
            return found.status, found.body.decode()

    def forget_csrf(self) -> None:
        """After the sign-in was replaced."""
        self._csrf = ""

    def open(self, path: str) -> Any:
        """The answer while it is being sent."""
        return self._browser.opened(f"{self._api}{path}")

    def rows(self, **wanted: str) -> list[tuple[str, str, str]]:
        """Rows of the audit, the oldest first: result, code, name of the target."""
        query = "&".join(f"{key}={value}" for key, value in wanted.items())
        status, found = self.ask(f"/audit?size=200&{query}")
        assert status == 200, found
        return [(each["result"], each["code"], each["target"]["name"]) for each in found["items"]][
            ::-1
        ]


class TeamCluster(Watched, Protocol):
    """`server`: the URL of its API server. `folder`: for files of the test."""

    @property
    def admin(self) -> Kubectl: ...
    @property
    def server(self) -> str: ...
    @property
    def folder(self) -> Path: ...


class TeamPlace:
    """A cluster with a console, for its users. `url`: of the console."""

    cluster: TeamCluster
    url: str

    def visitor(self, name: str) -> Visitor:
        """Signed in with a token of the user's ServiceAccount."""
        token = self.cluster.admin.run("create", "token", name, "-n", PLACE).strip()
        made = Visitor(self.url, token)
        assert made.signed.status == 200, made.signed.body
        return made

    def kubectl(self, name: str, kubeconfig: str) -> Kubectl:
        """Real kubectl with a kubeconfig that was downloaded; it lies in the cluster's folder."""
        path = self.cluster.folder / f"{name}.downloaded"
        path.write_text(kubeconfig, encoding="utf-8")
        return Kubectl(program("kubectl"), path, self.cluster.folder)


class Team(TeamPlace):
    """The cluster and its programs. `audit`: what the API server itself noted of the console."""

    cluster: ControlPlane

    def __init__(self, cluster: ControlPlane) -> None:
        self.cluster = cluster
        self.kubelet = PlayedKubelet(cluster)
        self._ports = {"console": free_port(), "people": free_port()}
        self.url = f"http://127.0.0.1:{self._ports['console']}"
        key = cluster.folder / "sign-in.key"
        key.write_text("k" * 40)
        self.store = cluster.folder / "store.sqlite"
        self.console = self._program(
            *("console", CONSOLE, "--gpu-source=none", "--sign-in=on"),
            *(f"--sign-in-key-file={key}", f"--store=sqlite:///{self.store}"),
            f"--kubeconfig-server={cluster.server}",
        )
        self.people = self._program("people", PEOPLE, "--identity=people-0")

    def _program(self, name: str, account: str, *flags: str) -> Component:
        token = self.cluster.admin.run(
            *("create", "token", account, "-n", SYSTEM, "--duration=4h")
        ).strip()
        path = write_kubeconfig(
            self.cluster.folder / f"{name}.kubeconfig",
            self.cluster.server,
            self.cluster.authority,
            token_user(token),
        )
        verb = "people-controller" if name == "people" else name
        argv = (*FAIRLEAD, verb, f"--listen=127.0.0.1:{self._ports[name]}", f"--kubeconfig={path}")
        log = self.cluster.logs / f"{name}.log"
        return Component(name, (*argv, *flags), log, environment())

    def start(self, component: Component) -> None:
        """Start it, and wait until it works."""
        component.start()
        server = Server(component, f"http://127.0.0.1:{self._ports[component.name]}")
        component.wait_until(server.is_ready, READY_SECONDS)

    def asked(self, resource: str, subresource: str = "", namespace: str = "") -> list[str]:
        """The users as which the console asked for these objects, from the API server's audit."""
        found = []
        for line in self.cluster.audit_log.read_text(encoding="utf-8").splitlines():
            each = json.loads(line)
            about = each.get("objectRef", {})
            kind = (about.get("resource"), about.get("subresource", ""))
            is_about = kind == (resource, subresource)
            is_over = each["stage"] == "ResponseComplete"
            if is_about and is_over and namespace in ("", about.get("namespace")):
                found.append(each.get("impersonatedUser", {}).get("username", ""))
        return found


def user(name: str, *groups: str, role: str = "researcher") -> Object:
    spec = {"userName": name.title(), "userId": name, "apiRoles": [role], "groups": list(groups)}
    metadata = {"name": name, "namespace": PLACE}
    return {"apiVersion": "fairlead.io/v1", "kind": "User", "metadata": metadata, "spec": spec}


def group(name: str, leaf: str) -> Object:
    spec = {"groupName": name, "quotaNames": [leaf]}
    metadata = {"name": name, "namespace": PLACE}
    return {"apiVersion": "fairlead.io/v1", "kind": "UserGroup", "metadata": metadata, "spec": spec}


@contextmanager
def running_team(root: Object, *more: Object) -> Iterator[Team]:
    """A team whose tree is enforced, with these Users and UserGroups, and all programs at work."""
    audited = (f"system:serviceaccount:{SYSTEM}:{CONSOLE}",)
    with running_control_plane(audited=audited) as cluster, ExitStack() as leaving:
        install(cluster)
        cluster.admin.create([big_node(NODE, 56)])
        cluster.admin.apply(of_file("people.yaml"))
        cluster.admin.run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        objects = [*of_file("people-controller.yaml"), *of_file("people-admission.yaml")]
        cluster.admin.apply([each for each in objects if each["kind"] != "Deployment"])
        for name in ("reader", "console-sign-in", "console-people", "console-admission"):
            cluster.admin.apply(of_file(f"{name}.yaml"))
        team = Team(cluster)
        leaving.callback(team.kubelet.stop)
        leaving.enter_context(running_mpi_operator(cluster))
        leaving.enter_context(running_controller(cluster))
        enforce(cluster, root)
        if more:
            cluster.admin.apply(list(more))
        for component in (team.people, team.console):
            leaving.callback(component.stop)
            team.start(component)
        team.kubelet.answer_for(cluster, NODE)
        yield team


class PlayedKubelet:
    """The kubelet's log address. `asked`: path and query of each request; `lines`: what a log has.

    A log that is followed ends when the API server closes the connection, or at the end.
    """

    def __init__(self, cluster: ControlPlane) -> None:
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.is_over = threading.Event()
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = parse_qs(parts.query)
                kubelet.asked.append((parts.path, query))
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self._piece(f"{'before' if 'previous' in query else 'now'}\n".encode())
                if query.get("follow") == ["true"]:
                    kubelet.is_over.wait(HANG_SECONDS)
                self._piece(b"")

            def _piece(self, data: bytes) -> None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        pair = cluster.issue("kubelet", names=["127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer_for(self, cluster: ControlPlane, node: str) -> None:
        """The API server asks for logs of this node's pods here from now on."""
        wait_until(
            "KWOK has written the node's status",
            lambda: "Ready" in cluster.admin.run("get", "node", node, "-o", "jsonpath={.status}"),
        )
        port = self._server.server_address[1]
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        cluster.admin.run(
            *("patch", "node", node, "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": status})),
        )

    def stop(self) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()


def is_refused(kubectl: Kubectl, *words: str) -> bool:
    """Whether the API server refuses it as forbidden, or does not accept the credential."""
    try:
        kubectl.run(*words)
    except KubectlError as error:
        return any(each in str(error) for each in ("Forbidden", "Unauthorized", "logged in"))
    return False


def orders(root: Object, parent: str = "") -> Iterator[Object]:
    """A tree with short names as the console takes it: full names, parents first."""
    name = f"{parent}.{root['name']}" if parent and not _is_full(root, parent) else root["name"]
    yield {
        "name": name,
        "parent": parent,
        "formerly": name,
        "min": dict(root.get("min", {})),
        "max": dict(root.get("max", {})),
        "namespaces": list(root.get("namespaces", ())),
    }
    for child in root.get("children", ()):
        yield from orders(child, name)


def _is_full(node: Object, parent: str) -> bool:
    return str(node["name"]).startswith(f"{parent}.")


def server_of(kubeconfig: str) -> str:
    found: str = yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"]
    return found
