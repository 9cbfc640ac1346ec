"""GPU values for one command, from a configured Prometheus or through the API server's proxy.

The proxy answers 503 for a Service without pods (an external Prometheus behind a Service without
selector), which is no fault of Prometheus: the user must configure its address
(docs/spec/arena-cli.md#gpu-metrics, docs/spec/arena-cli.md#prometheus-without-pods).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import Final

import msgspec

from fairlead.edge.kube.api_failure import ApiFailure
from fairlead.edge.kube.api_page import ItemReader
from fairlead.edge.kube.api_request import ApiRequest, Selection
from fairlead.edge.kube.kube_blocking import KubeBlocking, in_parallel
from fairlead.edge.kube.resource import SERVICES
from fairlead.edge.prometheus import answer as prometheus_answer
from fairlead.edge.prometheus.answer import (
    QUERY_PATH,
    TIMEOUT_SECONDS,
    PrometheusFailure,
    instant_form,
    parse_instant,
)
from fairlead.edge.prometheus.blocking import PrometheusBlocking
from fairlead.errors import OutsideError
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.metric import Sample
from fairlead.wire.kube.forms import JsonForm
from fairlead.wire.metrics.gpu_readings import METRICS, parse_readings
from fairlead.wire.metrics.prom_text import parse_page

KNOWN_SERVICES: Final = (
    ("kubernetes.io/service-name=prometheus-admin", 9335),
    ("kubernetes.io/service-name=prometheus-server", 9090),
    ("kubernetes.io/name=Prometheus", 9090),
    ("app.kubernetes.io/name=prometheus", 9090),
)
"""Labels of Prometheus Services and their ports; the first that exists is used."""
_ANY: Final = f'__name__=~"{"|".join(METRICS)}"'
_HOLDER_LABELS: Final = {
    "uuid": ("namespace_name",),
    "UUID": ("exported_namespace", "namespace", "pod_namespace", "NamespaceName"),
}
"""For each label of a card, the labels with its holder's namespace in the same families."""
PAGE_SECONDS: Final = 10.0
_NAME_IT: Final = "set PROMETHEUS_ADDRESS, or prometheus_address in ~/.arena/config"


class NoPrometheus(PrometheusFailure):
    """No Prometheus was found in the cluster, which is no fault."""


def gpu_query(namespace: str = "") -> str:
    """One expression for all metrics of readings; with `namespace` only for cards that pods of it
    hold, including parts of cards.

    Series of the card itself need not name a pod (those of a shared card never do), so they are
    found by the card.

    >>> print(gpu_query("a").replace(_ANY, "M").replace(" or ", chr(10) + "or "))
    {M} and on (uuid) ({M,namespace_name="a"})
    or {M} and on (UUID) ({M,exported_namespace="a"}
    or {M,namespace="a"}
    or {M,pod_namespace="a"}
    or {M,NamespaceName="a"})
    """
    if not namespace:
        return f"{{{_ANY}}}"
    held = {
        card: (" or ").join(f'{{{_ANY},{label}="{namespace}"}}' for label in labels)
        for card, labels in _HOLDER_LABELS.items()
    }
    return " or ".join(f"{{{_ANY}}} and on ({card}) ({series})" for card, series in held.items())


def named_readings(prometheus: PrometheusBlocking, namespace: str = "") -> tuple[GpuReading, ...]:
    """Readings from a Prometheus with a known address. Raises PrometheusFailure."""
    return _read(prometheus.query(gpu_query(namespace)))


def proxied_readings(api: KubeBlocking, namespace: str = "") -> tuple[GpuReading, ...]:
    """Readings from the cluster's Prometheus.

    Raises PrometheusFailure when there is none or it does not answer.
    """
    path = find_service(api)
    form = instant_form(gpu_query(namespace), None)
    request = ApiRequest(
        "create", "POST", path + QUERY_PATH, form, "application/x-www-form-urlencoded"
    )
    try:
        with KubeBlocking(api.connection, read_seconds=TIMEOUT_SECONDS) as impatient:
            body = impatient.send(request).body
    except ApiFailure as error:
        if error.status == 503 and "no endpoints available" in error.message:
            raise PrometheusFailure(
                f"{error.message}: the API server proxies only to pods; {_NAME_IT}", status=503
            ) from error
        if error.status == 404:  # for a Service that was just found: the proxy means its endpoints
            raise PrometheusFailure(
                f"nothing runs behind the Prometheus Service (`{path}`); {_NAME_IT}", status=404
            ) from error
        raise PrometheusFailure(
            f"Prometheus behind `{path}`: {error.what}; {_NAME_IT}", status=error.status
        ) from error
    return _read(parse_instant(path, 200, body))


def find_service(api: KubeBlocking) -> str:
    """The proxy's path to the first known Service in any namespace; all labels are searched at
    once. Raises NoPrometheus if there is none, and PrometheusFailure if they cannot be listed.
    """
    found = in_parallel([partial(_services, api, labels) for labels, _ in KNOWN_SERVICES])
    for (_, port), services in zip(KNOWN_SERVICES, found, strict=True):
        if isinstance(services, list) and services:
            namespace, name = services[0]
            return SERVICES.path(namespace, f"{name}:{port}").replace("%3A", ":") + "/proxy"
    failures = [each for each in found if isinstance(each, ApiFailure)]
    if failures:
        raise PrometheusFailure(f"services cannot be listed: {failures[0].message}; {_NAME_IT}")
    raise NoPrometheus(
        "no Prometheus Service is labelled "
        f"{' or '.join(labels for labels, _ in KNOWN_SERVICES)}; {_NAME_IT}"
    )


def _services(api: KubeBlocking, labels: str) -> list[tuple[str, str]]:
    reader = ItemReader(
        SERVICES,
        JsonForm(
            _WireService, lambda wire: (wire.metadata.namespace or "", wire.metadata.name or "")
        ),
    )
    return sorted(api.list_all(reader, Selection(labels=labels)).rows.values())


def page_readings(url: str) -> tuple[GpuReading, ...]:
    """Readings from the page of a GPU exporter. Raises OutsideError."""
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=PAGE_SECONDS) as answer:
            text = answer.read().decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise OutsideError("exporter", f"page `{url}` cannot be read: {error}") from error
    return parse_readings(parse_page(text, METRICS).samples, time.time())


def _read(found: Iterable[prometheus_answer.PrometheusSample]) -> tuple[GpuReading, ...]:
    """The cards that have a node; without one a card cannot be shown."""
    samples = (
        Sample(sample.labels.get("__name__", ""), sample.labels, sample.value) for sample in found
    )
    return tuple(reading for reading in parse_readings(samples, time.time()) if reading.node)


class _ServiceMeta(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None


class _WireService(msgspec.Struct):
    metadata: _ServiceMeta
