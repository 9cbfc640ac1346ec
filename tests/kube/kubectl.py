"""Runs the real kubectl on a cluster, real or simulated, for tests to read and write with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Objects = list[dict[str, Any]]


class KubectlError(Exception):
    """kubectl failed; the text is its standard error."""


def own_folders(scratch: Path) -> dict[str, str]:
    """Folders for kubectl's environment: it caches discovery there, never in the user's home or in
    the checkout.
    """
    return {"HOME": str(scratch), "KUBECACHEDIR": str(scratch / "kubectl-cache")}


class Kubectl:
    """kubectl with one kubeconfig, in folders of its own."""

    def __init__(self, program: Path, kubeconfig: Path, scratch: Path) -> None:
        self.kubeconfig = kubeconfig
        self._program = program
        self.folders = own_folders(scratch)
        self._environment = {**os.environ, **self.folders, "KUBECONFIG": str(kubeconfig)}

    def run(self, *arguments: str, stdin: str | None = None, seconds: float = 120.0) -> str:
        """Standard output of `kubectl ARGUMENTS`; KubectlError when it fails."""
        return self._answer(arguments, stdin, seconds).stdout

    def warned(self, obj: dict[str, Any]) -> list[str]:
        """The lines of standard error when the object is applied."""
        return self._answer(
            ("apply", "--server-side", "--force-conflicts", "-f", "-"), json.dumps(obj), 120.0
        ).stderr.splitlines()

    def _answer(
        self, arguments: tuple[str, ...], stdin: str | None, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(
            [str(self._program), *arguments],
            input=stdin,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if answer.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {answer.stderr.strip()}")
        return answer

    def get(self, resources: str, *arguments: str) -> Objects:
        """The objects of `kubectl get RESOURCES`, of all
        namespaces unless the arguments name one.
        """
        scope = () if any(word in ("-n", "-A") for word in arguments) else ("-A",)
        items: Objects = json.loads(self.run("get", resources, *scope, *arguments, "-o", "json"))[
            "items"
        ]
        return items

    def create(self, objects: Iterable[dict[str, Any]]) -> None:
        """Create the objects in one call; an existing object is an error."""
        self._send("create", objects)

    def apply(self, objects: Iterable[dict[str, Any]]) -> None:
        """Server-side apply of the objects in one call."""
        self._send("apply", objects, "--server-side", "--force-conflicts")

    def _send(self, verb: str, objects: Iterable[dict[str, Any]], *flags: str) -> None:
        items = list(objects)
        if items:
            self.run(
                verb,
                *flags,
                "-f",
                "-",
                stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
            )

    def delete(self, resources: str, *arguments: str) -> None:
        """Delete and wait until the objects are gone."""
        self.run(
            "delete",
            resources,
            *arguments,
            "--ignore-not-found",
            "--wait",
            "--timeout=60s",
            seconds=90,
        )

    def patch_status(
        self, resource: str, name: str, namespace: str, status: dict[str, Any]
    ) -> None:
        """Merge into the status of one object through its status
        subresource, as a controller does.
        """
        patch = json.dumps({"status": status})
        self.run(
            "patch",
            resource,
            name,
            "-n",
            namespace,
            "--subresource=status",
            "--type=merge",
            "-p",
            patch,
        )
