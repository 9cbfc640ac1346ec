"""The shipped admission policies on a real cluster: manifests that name no scheduler get
Fairlead's where they ask for shared GPUs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kube.deployed import POLICIES
from tests.kube.kubectl import Kubectl
from tests.kubelet.agent import MEMORY, SECONDS
from tests.waiting import wait_until

Object = dict[str, Any]


@contextmanager
def admission_policies(admin: Kubectl) -> Iterator[None]:
    """In force for the block."""
    admin.run("apply", "--server-side", "-f", str(POLICIES))
    wait_until(
        "the policies are in force", lambda: _scheduler(admin) == "fairlead-scheduler", SECONDS
    )
    try:
        yield
    finally:
        admin.run("delete", "-f", str(POLICIES))
    wait_until(
        "no policy names a scheduler", lambda: _scheduler(admin) == "default-scheduler", SECONDS
    )


def _scheduler(admin: Kubectl) -> str:
    """Of a pod that asks for shared memory."""
    part = {"name": "c", "image": "x", "resources": {"limits": {MEMORY: "1"}}}
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [part]}}
    pod["metadata"] = {"name": "asks", "namespace": "default"}
    words = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    return str(json.loads(admin.run(*words, stdin=json.dumps(pod)))["spec"]["schedulerName"])
