"""What does a real Prometheus make of our pages? The server from Debian, scraping loopback, and `promtool`."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.waiting import wait_until


class Sample(NamedTuple):
    """One element of an instant vector; a scalar has no labels."""

    labels: dict[str, str]
    value: float


class Prometheus:
    """A running server: queries answer with real evaluation, targets tell what scraping met."""

    def __init__(self, component: Component, host: str, port: int) -> None:
        self.component = component
        self.port = port
        self.url = f"http://{host}:{port}"

    def query(self, expression: str) -> list[Sample]:
        """The instant vector (or scalar) of an expression; an invalid one raises urllib's HTTPError."""
        result = self._ask("query", query=expression)
        if result["resultType"] == "scalar":
            return [Sample({}, float(result["result"][1]))]
        return [Sample(item["metric"], float(item["value"][1])) for item in result["result"]]

    def label_values(self, metric: str, label: str) -> list[str]:
        """What Grafana's `label_values(metric, label)` asks for."""
        values: list[str] = self._ask(f"label/{label}/values", **{"match[]": metric})
        return values

    def targets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("targets")["activeTargets"]
        return found

    def wait_for_data(self, expression: str, seconds: float = 60.0) -> list[Sample]:
        """Ask until the expression returns something; TimeoutError that names it when time is up."""
        found: list[Sample] = []

        def has_data() -> bool:
            found[:] = self.query(expression)
            return bool(found)

        wait_until(f"`{expression}` returns data", has_data, seconds)
        return found

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as answered:
            return answered.status == 401  # it asks for a password, so it is there
        except OSError:
            return False

    def _ask(self, path: str, **parameters: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)["data"]


@contextmanager
def running_prometheus(
    targets: Mapping[str, str],
    log: Path,
    scrape_seconds: int = 1,
    *,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    host: str = "127.0.0.1",
    flags: Sequence[str] = (),
) -> Iterator[Prometheus]:
    """Prometheus for as long as the block lasts; `targets` maps job names to `host:port`, `labels` to what discovery would add.

    As everywhere with the default `honor_labels: false`, a page's own label of such a name becomes `exported_…`.
    """
    folder = Path(tempfile.mkdtemp(prefix="fairlead-prometheus-"))
    port = free_port()
    added = labels or {}
    jobs = [
        {"job_name": name, "static_configs": [{"targets": [place], "labels": {**added.get(name, {})}}]} for name, place in targets.items()
    ]
    timing = {"scrape_interval": f"{scrape_seconds}s", "scrape_timeout": f"{scrape_seconds}s", "evaluation_interval": "1s"}
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump({"global": timing, "scrape_configs": jobs}), encoding="utf-8")
    component = Component(
        "prometheus",
        [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={host}:{port}",
            "--log.level=warn",
            *flags,
        ],
        log,
    )
    prometheus = Prometheus(component, host, port)
    try:
        component.start()
        component.wait_until(prometheus.is_ready, 60)
        yield prometheus
    finally:
        component.stop()
        shutil.rmtree(folder, ignore_errors=True)


def check_metrics(page: str) -> str:
    """What `promtool check metrics` complains about; empty when it accepts the page."""
    answer = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False)
    return "" if answer.returncode == 0 else (answer.stdout + answer.stderr).strip()
