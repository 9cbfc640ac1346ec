"""Applies the files of `deploy/` unchanged to a real control plane, and starts the processes that
they name beside it.

Two things differ from a cluster with real nodes. No kubelet runs the pods, so the webhook and the
scheduler are processes on loopback. No address of a Service reaches them, so the webhook's Service
is an ExternalName of `localhost`; the API server still uses its real name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from tests.kube.addresses import free_port
from tests.kube.clocks import clock_ahead
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.servers import FAIRLEAD, READY_SECONDS, environment

Object = dict[str, Any]
DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy"
POLICIES: Final = DEPLOY / "gpushare-admission.yaml"
FILES: Final = tuple(sorted(path.name for path in DEPLOY.glob("*.yaml")))


def objects(text: str) -> list[Object]:
    return [each for each in yaml.safe_load_all(text) if each]


def of_file(name: str) -> list[Object]:
    return objects((DEPLOY / name).read_text(encoding="utf-8"))


def rights_of_agents() -> list[Object]:
    """The accounts of node agents and their rights, without the agents."""
    return [
        each
        for name in ("node-agent.yaml", "node-agent-admission.yaml")
        for each in of_file(name)
        if each["kind"] != "DaemonSet"
    ]


def of_kind(found: list[Object], kind: str) -> Object:
    """The one object of a kind."""
    (one,) = (each for each in found if each["kind"] == kind)
    return one


def webhook_objects() -> list[Object]:
    """The webhook, and everything that it may be called for about shared GPUs."""
    return [*of_file("admission-webhook.yaml"), *of_file("gpushare-webhook.yaml")]


@contextmanager
def running_webhook(
    cluster: ControlPlane, found: list[Object], clock: float = 0.0
) -> Iterator[Component]:
    """Apply `found`, and start the webhook that it names, as the Deployment describes, under the
    Deployment's service account.
    """
    try:
        port = free_port()
        cluster.admin.apply([on_this_machine(each, port) for each in found])
        with webhook_process(cluster, port, clock) as webhook:
            yield webhook
    finally:
        for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
            cluster.admin.run("delete", kind, "-l", "app.kubernetes.io/part-of=fairlead")


@contextmanager
def webhook_process(cluster: ControlPlane, port: int, clock: float = 0.0) -> Iterator[Component]:
    """One ready replica: it has a certificate, and the API server has its CA bundle.

    `clock`: seconds by which its clock is ahead.
    """
    deployment = of_kind(of_file("admission-webhook.yaml"), "Deployment")["spec"]["template"][
        "spec"
    ]
    (container,) = deployment["containers"]
    token = cluster.admin.run(
        "create", "token", deployment["serviceAccountName"], "-n", "fairlead-system"
    ).strip()
    kubeconfig = write_kubeconfig(
        cluster.folder / f"webhook-{port}.kubeconfig",
        cluster.server,
        cluster.authority,
        token_user(token),
    )
    flags = [
        *(flag.replace(":8443", f"127.0.0.1:{port}") for flag in container["args"]),
        f"--kubeconfig={kubeconfig}",
    ]
    log = cluster.logs / f"admission-webhook-{port}.log"
    webhook = Component(
        "fairlead admission-webhook",
        [*FAIRLEAD, *container["command"][1:], *flags],
        log,
        environment() | clock_ahead(clock),
    )
    try:
        webhook.start()
        webhook.wait_until(
            lambda: "certificate: another one is shown" in webhook.log_tail(), READY_SECONDS
        )
        yield webhook
    finally:
        webhook.stop()


def on_this_machine(obj: Object, port: int) -> Object:
    if obj["kind"] == "Service":
        return {**obj, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    for hook in obj.get("webhooks", ()):
        hook["clientConfig"]["service"]["port"] = port
    return obj
