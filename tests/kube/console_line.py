"""A console beside a real API server, with the account and the rights of deploy/, and an
administrator of it.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import of_file
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kubectl import Kubectl
from tests.kube.objects import namespace
from tests.kube.oidc_provider import PlainBrowser
from tests.kube.quota_line import SYSTEM
from tests.kube.servers import Server, running

from fairlead.settings import SIGN_IN_KEY_SECRET

ACCOUNT = "fairlead-reader"
_FILES = ("reader", "console-sign-in", "console-people", "console-admission")


def install_rights(cluster: ControlPlane) -> None:
    """The namespace of an installation, its definitions of people, and the rights of a console."""
    cluster.admin.apply([namespace(SYSTEM)])
    cluster.admin.apply(of_file("people.yaml"))
    cluster.admin.run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    for name in _FILES:
        cluster.admin.apply(of_file(f"{name}.yaml"))


def console(cluster: ControlPlane, log: str) -> AbstractContextManager[Server]:
    """A console of its own store, with the rights of deploy/."""
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


class Administrator:
    """Signed in with a token that may do everything; the console has its own rights.

    `token`: of the service account.
    """

    def __init__(self, admin: Kubectl, name: str = "maker", space: str = SYSTEM) -> None:
        admin.run("create", "serviceaccount", name, "-n", space)
        admin.run(
            *("create", "clusterrolebinding", name, "--clusterrole=cluster-admin"),
            f"--serviceaccount={space}:{name}",
        )
        self.token = admin.run("create", "token", name, "-n", space).strip()

    def send(self, server: Server, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.token}", "Content_Type": "application/json"}
        found = PlainBrowser().send(f"{server.url}/api/v1{path}", method, data, **sent)
        return found.status, found.json

    def read(self, server: Server, path: str) -> tuple[int, str]:
        """Status and text of a route's answer."""
        sent = {"Authorization": f"Bearer {self.token}"}
        found = PlainBrowser().send(f"{server.url}/api/v1{path}", **sent)
        return found.status, found.body.decode()

    def state(self, server: Server, id: str) -> str:
        status, found = self.send(server, "GET", f"/operations/{id}")
        assert status == 200, found
        return str(found["row"]["state"])
