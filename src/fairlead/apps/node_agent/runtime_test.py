"""Tests with a container whether a node's container runtime supports CDI.

Names and versions of runtimes prove nothing.

A runtime without CDI starts a container without its devices and reports no error. So a test pod
gets a device that only a CDI file defines, and succeeds only if the file took effect. The result is
kept for these versions of kubelet and runtime. While it is unknown, the deferred mode is not used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from fairlead.apps.node_agent.desk import Desk, NodeAgentSettings
from fairlead.errors import OutsideError
from fairlead.model.actions import CreateObject, DeleteObject, ObjectRef, Result
from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits, OfferedDevice
from fairlead.model.node import Node
from fairlead.model.pod import PodPhase
from fairlead.ports import DeviceAnswers, NodeApi, ResourceServer
from fairlead.rules.devices.ids import token
from fairlead.wire.kubelet.cdi import device_name

RESOURCE: Final = "fairlead.io/cdi-test"
ENDPOINT: Final = "fairlead-cdi-test.sock"
IDS: Final = ("cdi-test",)
POD_SECONDS: Final = 60.0
"""`POD_SECONDS`: time for the pod; after it the result of this test is unknown."""
LOOK_SECONDS: Final = 0.3
_VARIABLE: Final = "FAIRLEAD_CDI_TEST"
_PROGRAM: Final = f"import os; raise SystemExit(os.environ.get({_VARIABLE!r}) != 'yes')"
_NOT_STARTED: Final = "StartError"
"""The kubelet's reason when the image has no such program, which shows nothing about CDI."""
_TOKEN: Final = token(RESOURCE, IDS)
_log: Final = logging.getLogger(__name__)


class RuntimeTest:
    """The test, with a pod of any image that has `python3`, as Fairlead's has."""

    def __init__(
        self,
        desk: Desk,
        api: NodeApi,
        serve: Callable[[str, str, DeviceAnswers, bool], ResourceServer],
        chosen: NodeAgentSettings,
    ) -> None:
        self._api = api
        self._files = desk.files
        self._monotonic = desk.monotonic
        self._serve = serve
        self._namespace = chosen.namespace
        self._image = chosen.test_image
        self._node = chosen.node
        self._pod = f"fairlead-cdi-test-{chosen.node}"[:253].rstrip("-.")

    def registered(self) -> None:
        return

    def preferred(
        self, available: Sequence[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        return available[:size]

    async def allocate(self, ids: Sequence[str]) -> CdiDevices | ContainerEdits | DeviceRefusal:
        return CdiDevices((device_name(_TOKEN),))

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        return None

    async def found(self, node: Node) -> bool | None:
        """Whether the node's runtime supports CDI; None = the test had no result.

        Runs a pod if it is not known yet.
        """
        versions = f"kubelet {node.kubelet_version} {node.runtime_version}"
        does_cdi = self._files.read_runtime(versions)
        if does_cdi is None:
            try:
                does_cdi = await self._try()
                if does_cdi is not None:
                    self._files.write_runtime(versions, does_cdi)
            except OutsideError as failed:
                _log.warning(
                    "it cannot be tested whether %s supports CDI: %s",
                    node.runtime_version,
                    failed.log_line,
                )
        _log.info(
            "%s %s",
            node.runtime_version,
            {True: "does CDI", False: "does not do CDI", None: "was not found to do CDI"}[does_cdi],
        )
        return does_cdi

    async def _try(self) -> bool | None:
        self._files.write_cdi(_TOKEN, ContainerEdits({_VARIABLE: "yes"}))
        served = self._serve(ENDPOINT, RESOURCE, self, False)
        served.offer([OfferedDevice(each) for each in IDS])
        serving = asyncio.ensure_future(served.run())
        until = self._monotonic() + POD_SECONDS
        try:
            while not served.is_watched and self._monotonic() < until:  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(LOOK_SECONDS)
            await self._remove(until)
            made = await self._api.apply(CreateObject(self._manifest(), self._namespace, "pods"))
            if made.result is not Result.DONE:
                raise OutsideError(
                    "kubernetes",
                    f"pod `{self._pod}` cannot be made: {made.reason}",
                    "look at the rights of the node agent",
                )
            return await self._ending(until)
        finally:
            served.offer(())
            await self._api.apply(DeleteObject(self._ref()))
            await asyncio.sleep(LOOK_SECONDS)  # the kubelet receives the empty list
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            self._files.remove(_TOKEN)

    async def _ending(self, until: float) -> bool | None:
        """Whether its one container succeeded; None if it did not end."""
        while self._monotonic() < until:
            pod = await self._api.get_pod(self._namespace, self._pod)
            if pod is not None and pod.phase is PodPhase.SUCCEEDED:
                return True
            if pod is not None and pod.phase is PodPhase.FAILED:
                ends = [each for each in pod.statuses if each.exit_code is not None]
                if ends and all(each.reason != _NOT_STARTED for each in ends):
                    return False
                reasons = [(pod.reason, pod.message), *((e.reason, e.message) for e in ends)]
                shown = " ".join(word for pair in reasons for word in pair if word)
                hint = "--test-image must name an image with `python3`" if ends else ""
                raise OutsideError("kubelet", f"pod `{self._pod}` did not run: {shown}", hint)
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def _remove(self, until: float) -> None:
        """Remove a pod that an earlier agent has left."""
        while (
            await self._api.get_pod(self._namespace, self._pod) is not None
            and self._monotonic() < until
        ):
            await self._api.apply(DeleteObject(self._ref()))
            await asyncio.sleep(LOOK_SECONDS)

    def _ref(self) -> ObjectRef:
        return ObjectRef("v1", "Pod", self._pod, self._namespace, plural="pods")

    def _manifest(self) -> dict[str, Any]:
        container = {
            "name": "test",
            "image": self._image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["python3", "-c", _PROGRAM],
            "resources": {"limits": {RESOURCE: "1"}},
        }
        spec = {
            "nodeName": self._node,
            "containers": [container],
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
        }
        meta = {
            "name": self._pod,
            "namespace": self._namespace,
            "labels": {"app.kubernetes.io/name": "fairlead-cdi-test"},
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
