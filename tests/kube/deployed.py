"""The files of `deploy/` on a real control plane: applied as they are, and the processes that they name started beside it.

What differs from a cluster with real nodes: nobody runs the pods, so the webhook and the scheduler are processes on loopback; and a Service
has no address that reaches them, so the webhook's is an ExternalName of `localhost`, asked under its real name all the same.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from tests.kube.addresses import free_port, is_listening
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.servers import FAIRLEAD, READY_SECONDS, environment

Object = dict[str, Any]
DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy"
POLICIES: Final = DEPLOY / "gpushare-admission.yaml"
FILES: Final = tuple(sorted(path.name for path in DEPLOY.glob("*.yaml")))


def objects(text: str) -> list[Object]:
    return [each for each in yaml.safe_load_all(text) if each]


def of_file(name: str) -> list[Object]:
    return objects((DEPLOY / name).read_text(encoding="utf-8"))


def of_kind(found: list[Object], kind: str) -> Object:
    """The one object of a kind."""
    (one,) = (each for each in found if each["kind"] == kind)
    return one


def webhook_objects() -> list[Object]:
    """What a person applies: the certificate is filled in."""
    script = DEPLOY / "gpushare-webhook.sh"
    return objects(subprocess.run(["sh", str(script)], capture_output=True, text=True, timeout=60, check=True).stdout)


@contextmanager
def running_webhook(cluster: ControlPlane, found: list[Object]) -> Iterator[Component]:
    """`found` applied, and the webhook that it asks, started as the Deployment says."""
    port = free_port()
    folder = cluster.folder / f"webhook-{port}"
    folder.mkdir()
    for name, data in of_kind(found, "Secret")["data"].items():
        (folder / name).write_bytes(base64.b64decode(data))
    (container,) = of_kind(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    flags = [flag.replace("/etc/fairlead/tls", str(folder)).replace(":8443", f"127.0.0.1:{port}") for flag in container["args"]]
    webhook = Component(
        "fairlead admission-webhook", [*FAIRLEAD, *container["command"][1:], *flags], cluster.logs / "admission-webhook.log", environment()
    )
    try:
        webhook.start()
        webhook.wait_until(lambda: is_listening(port), READY_SECONDS)
        cluster.admin.apply([_on_this_machine(each, port) for each in found])
        yield webhook
    finally:
        webhook.stop()
        for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
            cluster.admin.run("delete", kind, "-l", "app.kubernetes.io/part-of=fairlead")


def _on_this_machine(obj: Object, port: int) -> Object:
    if obj["kind"] == "Service":
        return {**obj, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    for hook in obj.get("webhooks", ()):
        hook["clientConfig"]["service"]["port"] = port
    return obj
