"""Finds pages of GPU exporters by their pods: by labels in a namespace, at the pod's address.

Pods are watched, so a new, deleted or moved pod is known within a second. Only pods of the given
namespace count, so that users who may create pods elsewhere cannot add GPU values.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from operator import attrgetter

from msgspec import Struct, structs

from fairlead import settings
from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.reflector import Mirror, Reflector
from fairlead.edge.kube.resource import NAMESPACES, PODS
from fairlead.errors import Forbidden, OutsideError
from fairlead.model.changes import KIND_PODS
from fairlead.model.devices.exporter_pod import ExporterPod
from fairlead.model.installation import INSTALLATION_LABEL, NODE_NAMESPACE, NODE_PART
from fairlead.model.snapshot import GPU_TELEMETRY
from fairlead.model.source import Source, SourceState
from fairlead.ports import Clock
from fairlead.wire.kube.budgets import WireNamespace, parse_namespace
from fairlead.wire.kube.exporter_pods import WireExporterPod, parse_exporter_pod
from fairlead.wire.kube.forms import JsonForm

_log = logging.getLogger("fairlead.exporter")


class PodSearch(Struct, frozen=True):
    """Which pods, and which of their ports, by name or number.

    `namespace` "": all; None: that of the installation's pods that use their node, by its label.
    """

    labels: str = settings.GPU_EXPORTER_LABELS
    namespace: str | None = NODE_NAMESPACE
    port: str = settings.GPU_EXPORTER_PORT_NAME

    def url_of(self, pod: ExporterPod) -> str:
        """The URL of its page; "" = the pod has no such port.

        >>> PodSearch().url_of(ExporterPod("ns", "p", ip="fd00::7", ports={"metrics": 9400}))
        'http://[fd00::7]:9400/metrics'
        """
        port = int(self.port) if self.port.isdigit() else pod.ports.get(self.port, 0)
        host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
        return f"http://{host}:{port}/metrics" if port else ""

    @property
    def where(self) -> str:
        place = f"in namespace `{self.namespace}`" if self.namespace else "in any namespace"
        return f"with labels `{self.labels}` {place}"


class ExporterPods:
    """Finds pages while `run` runs (a `PageFinder`). It does not close its API."""

    def __init__(self, api: KubeApi, clock: Clock, search: PodSearch | None = None) -> None:
        self._api = api
        self._clock = clock
        self._search = search or PodSearch()
        self._pods: Mirror[ExporterPod] = Mirror(attrgetter("key"))
        self._reflector = self._follow()
        self._read: tuple[ExporterPod, ...] = ()
        self._pages: Mapping[str, str] = {}
        self._has_found = False
        self._has_warned = False

    async def run(self) -> None:
        if self._search.namespace is None:
            self._search = structs.replace(self._search, namespace=await self._installed_in())
            self._reflector = self._follow()
        await self._reflector.run()

    def _follow(self) -> Reflector[ExporterPod]:
        return Reflector(
            self._api,
            ItemReader(PODS, JsonForm(WireExporterPod, parse_exporter_pod)),
            KIND_PODS,
            self._pods.observe,
            selection=Selection(
                namespace=self._search.namespace or None, labels=self._search.labels
            ),
            now=self._clock.now,
            on_change=self._note_change,
        )

    async def _installed_in(self) -> str:
        """The default if no namespace has the label, or if this user may not list namespaces.

        Only administrators label namespaces, so users cannot add GPU values in theirs.
        """
        reader = ItemReader(NAMESPACES, JsonForm(WireNamespace, parse_namespace))
        labelled = Selection(labels=f"{INSTALLATION_LABEL}={NODE_PART}")
        backoff = Backoff()
        while True:
            try:
                rows = (await self._api.list_all(reader, labelled)).rows.values()
            except Forbidden:
                return NODE_NAMESPACE
            except OutsideError:  # the source of the cluster reports it
                await asyncio.sleep(backoff.next_delay())
                continue
            names = sorted(each.name for each in rows)
            return names[0] if names and NODE_NAMESPACE not in names else NODE_NAMESPACE

    def pages(self) -> Mapping[str, str]:
        pods = self._pods.rows()
        if pods is not self._read:
            self._read = pods
            found = {
                self._search.url_of(pod): pod.node for pod in pods if pod.is_running and pod.ip
            }
            found.pop("", None)
            if found != self._pages:
                self._pages = found
                self._has_found |= bool(found)
        return self._pages

    def source(self) -> Source:
        error, pods = self._reflector.last_error, self._pods.rows()
        if error is not None:
            state = SourceState.FORBIDDEN if isinstance(error, Forbidden) else SourceState.FAILING
            return Source(
                GPU_TELEMETRY,
                state,
                f"pods of GPU exporters cannot be found: {error.what}",
                error.hint,
            )
        if not self._reflector.is_synced:
            return Source(GPU_TELEMETRY, SourceState.SYNCING)
        if not pods:
            return self._none_found
        deaf = [pod for pod in pods if pod.is_running and pod.ip and not self._search.url_of(pod)]
        if deaf:
            more = f" (and {len(deaf) - 1} more)" if len(deaf) > 1 else ""
            what = f"pod `{deaf[0].key}`{more} has no port `{self._search.port}`"
            return Source(
                GPU_TELEMETRY,
                SourceState.FAILING,
                what,
                "name its port with `--gpu-exporter-port`",
            )
        if not self.pages():
            return Source(
                GPU_TELEMETRY,
                SourceState.FAILING,
                f"none of {len(pods)} pods {self._search.where} is running",
            )
        return Source(GPU_TELEMETRY)

    @property
    def _none_found(self) -> Source:
        """The source when there are no pods: no fault if there never was one, a fault if the
        last one is gone.
        """
        state = SourceState.FAILING if self._has_found else SourceState.OFF
        hint = (
            "install the part gpuExporter (`fairlead install`, or `upgrade --set "
            "parts.gpuExporter=true`), or name pages with `--gpu-exporter`"
        )
        return Source(
            GPU_TELEMETRY,
            state,
            f"no GPU exporter is found: there is no pod {self._search.where}",
            hint,
        )

    def _note_change(self) -> None:
        if self._reflector.is_synced and not self._has_warned and not self._pods.rows():
            self._has_warned = True
            _log.warning(
                "no GPU values: %s; hint: %s", self._none_found.message, self._none_found.hint
            )
