"""Does the page Health show of a real API server and a real Prometheus what they report themselves?

The oracle is kubectl and Prometheus's own API: versions, what is served, what may be read.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from tests.kube.addresses import free_port
from tests.kube.control_plane import ControlPlane
from tests.kube.gpu_pages import Card, dcgm_page, served
from tests.kube.prometheus import Prometheus, running_prometheus
from tests.kube.servers import Server, running
from tests.waiting import wait_until

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.queries.dependency_facts import DependencyQuery
from fairlead.model.dependency import DependencyLooks

CARDS = [Card("gpu-1", index, 50, 1000, 16384) for index in range(4)]
FAMILIES = 4
"""Families of each card in `dcgm_page`."""


@pytest.fixture(scope="module")
def prometheus(company: ControlPlane) -> Iterator[Prometheus]:
    with (
        served(lambda: dcgm_page(CARDS)) as page,
        running_prometheus({"gpu": page}, company.logs / "health-prometheus.log") as server,
    ):
        server.wait_for_data("DCGM_FI_DEV_GPU_UTIL")
        yield server


def console(company: ControlPlane, name: str, *flags: str) -> AbstractContextManager[Server]:
    """A console that answers on `/health`, ready or not."""
    return running(
        "console",
        *flags,
        log=company.logs / f"health-{name}.log",
        serves=lambda server: bool(_rows(server)),
    )


def _rows(server: Server) -> dict[str, Any]:
    try:
        return {row["name"]: row for row in server.api("/health")["items"]}
    except OSError:
        return {}


def values(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for found in row["found"] for key, value in found["values"].items()}


def test_versions_addresses_and_series_are_those_that_the_servers_report(
    company: ControlPlane, prometheus: Prometheus
) -> None:
    flags = (
        f"--kubeconfig={company.kubeconfig}",
        f"--prometheus={prometheus.url}",
        "--gpu-source=prometheus",
    )
    with console(company, "whole", *flags) as server:
        wait_until(
            "the API server is well and GPU values came", lambda: _settled(_rows(server)), 60
        )
        rows = _rows(server)
        reported = json.loads(company.admin.run("version", "-o", "json"))["serverVersion"][
            "gitVersion"
        ]
        with urllib.request.urlopen(
            f"{prometheus.url}/api/v1/status/buildinfo", timeout=10
        ) as answer:
            built = json.loads(answer.read())["data"]["version"]
        assert (values(rows["cluster-api"])["version"], values(rows["cluster-api"])["address"]) == (
            reported,
            company.server,
        )
        assert (values(rows["prometheus"])["version"], values(rows["prometheus"])["address"]) == (
            built,
            prometheus.url,
        )
        assert values(rows["prometheus"])["series"] == len(CARDS) * FAMILIES
        assert (
            rows["prometheus"]["state"],
            rows["permissions"]["state"],
            rows["clock-skew"]["state"],
        ) == ("ok", "ok", "ok")
        kinds = values(rows["job-kinds"])["kinds"]
        served = {
            line.split(".")[0]
            for line in company.admin.run(
                "api-resources", "--api-group=kubeflow.org", "-o", "name"
            ).split()
        }
        assert ("pytorchjobs" in served) == ("PyTorchJob" in kinds)
        assert ("mpijobs" in served) == ("MPIJob" in kinds)


def _settled(rows: dict[str, Any]) -> bool:
    return (
        bool(rows)
        and rows["cluster-api"]["state"] == "ok"
        and rows["gpu-telemetry"]["found"][0]["code"] == "health-reporting"
    )


def test_a_prometheus_that_is_gone_is_named_with_its_address_and_the_setting(
    company: ControlPlane,
) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with console(
        company,
        "gone",
        f"--kubeconfig={company.kubeconfig}",
        f"--prometheus={address}",
        "--gpu-source=prometheus",
    ) as server:
        wait_until("the console is ready", server.is_ready, 60)
        row = _rows(server)["prometheus"]
        assert row["state"] == "fail"
        assert address in row["found"][0]["text"]
        assert "--prometheus" in row["setting"]["text"]
        assert row["sources"] == ["gpu-telemetry"]
        assert address in server.api("/nodes")["warnings"][0]["message"]
        assert len(server.api("/nodes")["items"]) > 0


def test_a_user_that_may_not_read_pods_gets_the_reason(company: ControlPlane) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    kubeconfig = company.write_service_account_kubeconfig("sees-nodes-alone", rules)
    with console(company, "forbidden", f"--kubeconfig={kubeconfig}") as server:
        wait_until(
            "it shows what it may not read",
            lambda: _rows(server)["permissions"]["state"] == "fail",
            60,
        )
        row = _rows(server)["permissions"]
        assert "pods" in row["found"][0]["text"]
        assert _may_list(company, "nodes") and not _may_list(company, "pods")
        wait_until("the console is ready", server.is_ready, 60)
        assert ("forbidden", "pods") in [
            (each["code"], each["source"]) for each in server.api("/nodes")["warnings"]
        ]


def _may_list(company: ControlPlane, resource: str) -> bool:
    """Whether the account may list this resource, by the request
    that kubectl's `auth can-i` sends.
    """
    attributes = {"verb": "list", "resource": resource}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    spec = {
        "user": "system:serviceaccount:default:sees-nodes-alone",
        "resourceAttributes": attributes,
    }
    reported = company.admin.run(
        "create", "-f", "-", "-o", "json", stdin=json.dumps({**review, "spec": spec})
    )
    return bool(json.loads(reported)["status"]["allowed"])


def test_an_api_server_that_is_gone_is_reported_before_the_caches_are_filled(
    company: ControlPlane,
) -> None:
    text = company.kubeconfig.read_text(encoding="utf-8")
    port = free_port()
    gone = company.folder / "gone.kubeconfig"
    gone.write_text(text.replace(company.server, f"https://127.0.0.1:{port}"), encoding="utf-8")
    with console(company, "nobody", f"--kubeconfig={gone}") as server:
        row = _rows(server)["cluster-api"]
        assert (row["state"], str(port) in row["found"][0]["text"]) == ("fail", True)
        assert _rows(server)["permissions"]["state"] == "off"


@pytest.mark.parametrize(
    ("apart", "low", "high"), [(0.0, 0.0, 0.0), (-90.0, 88.0, 91.0), (90.0, -91.0, -88.0)]
)
def test_a_clock_that_is_apart(
    company: ControlPlane, apart: float, low: float, high: float
) -> None:
    """`apart`: the difference between this machine's clock, as the console is given it, and the API
    server's.
    """
    connection = find_connection(str(company.kubeconfig), None, env={})
    assert connection is not None

    async def looked() -> DependencyLooks:
        async with KubeApi(connection) as api:
            return await DependencyQuery(api, now=lambda: time.time() + apart).look()

    ahead = asyncio.run(looked()).api.ahead_seconds
    assert ahead is not None
    assert low <= ahead <= high
