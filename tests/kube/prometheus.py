"""Runs a real Prometheus that scrapes loopback (the server from Debian), and `promtool`, so that
tests can check Fairlead's pages with them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
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
from tests.programs import run_program
from tests.waiting import wait_until


class Sample(NamedTuple):
    """One element of an instant vector; a scalar has no labels."""

    labels: dict[str, str]
    value: float


class Prometheus:
    """A running server: queries get real evaluation, and targets show the result of scraping."""

    def __init__(
        self, component: Component, host: str, port: int, config: Path, scrape_seconds: int
    ) -> None:
        self.component = component
        self._config = config
        self._scrape_seconds = scrape_seconds
        self.port = port
        self.url = f"http://{host}:{port}"

    def query(self, expression: str) -> list[Sample]:
        """The instant vector (or scalar) of an expression; an invalid one raises urllib's HTTPError
        with Prometheus's message.
        """
        try:
            result = self._ask("query", query=expression)
        except urllib.error.HTTPError as refused:
            refused.add_note(f"{expression}: {refused.read().decode(errors='replace')}")
            raise
        if result["resultType"] == "scalar":
            return [Sample({}, float(result["result"][1]))]
        return [Sample(item["metric"], float(item["value"][1])) for item in result["result"]]

    def query_range(
        self, expression: str, start: float, end: float, step: float
    ) -> list[dict[float, float]]:
        """Each series of an expression over time: instant -> value."""
        asked = {"query": expression, "start": str(start), "end": str(end), "step": str(step)}
        return [
            {float(at): float(value) for at, value in series["values"]}
            for series in self._ask("query_range", **asked)["result"]
        ]

    def label_values(self, metric: str, label: str) -> list[str]:
        """The answer to Grafana's `label_values(metric, label)`."""
        values: list[str] = self._ask(f"label/{label}/values", **{"match[]": metric})
        return values

    def targets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("targets")["activeTargets"]
        return found

    def parsed(self, expression: str) -> dict[str, Any]:
        """The expression's tree, by Prometheus's own parser; since Prometheus 3."""
        found: dict[str, Any] = self._ask("parse_query", query=expression)
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The rules that it has loaded and evaluated, of all groups."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def alerts(self) -> set[tuple[tuple[str, str], ...]]:
        """Labels of alerts that are pending or firing."""
        return {tuple(sorted(alert["labels"].items())) for alert in self._ask("alerts")["alerts"]}

    def label_names(self) -> set[str]:
        return set(self._ask("labels"))

    def configure(
        self,
        targets: Mapping[str, str],
        labels: Mapping[str, Mapping[str, str]] | None = None,
        *,
        honor_labels: bool = False,
        more: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Set what it scrapes from its next start, or from `reload`, on."""
        jobs = [
            {
                "job_name": name,
                "honor_labels": honor_labels,
                "static_configs": [
                    {"targets": [place], "labels": {**(labels or {}).get(name, {})}}
                ],
            }
            for name, place in targets.items()
        ]
        every = f"{self._scrape_seconds}s"
        timing = {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": "1s"}
        self._config.write_text(
            yaml.safe_dump({"global": timing, "scrape_configs": [*jobs, *more]}), encoding="utf-8"
        )

    def reload(self) -> None:
        """Load the new configuration without a restart; stored samples stay."""
        os.kill(self.component.pid, signal.SIGHUP)

    def wait_for_data(self, expression: str, seconds: float = 60.0) -> list[Sample]:
        """Query until the expression returns something;
        TimeoutError that names it when time is up.
        """
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
            return answered.status == 401  # it asks for a password, so it runs
        except OSError:
            return False

    def _ask(self, path: str, **parameters: str) -> Any:
        with urllib.request.urlopen(
            f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10
        ) as answer:
            return json.load(answer)["data"]


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder of one Prometheus, for the block."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-prometheus-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def started(prometheus: Prometheus) -> Iterator[Prometheus]:
    """Start it, wait until it is ready, and stop it at the end."""
    try:
        prometheus.component.start()
        prometheus.component.wait_until(prometheus.is_ready, 60)
        yield prometheus
    finally:
        prometheus.component.stop()


@contextmanager
def running_prometheus(
    targets: Mapping[str, str],
    log: Path,
    scrape_seconds: int = 1,
    *,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    host: str = "127.0.0.1",
    flags: Sequence[str] = (),
    more: Sequence[Mapping[str, Any]] = (),
    history: str = "",
) -> Iterator[Prometheus]:
    """Prometheus for the block; `targets` maps job names to `host:port`, `labels` to what discovery
    would add.

    `more`: whole scrape configurations. `history`: samples that it has from its start, as
    OpenMetrics text with times.

    As everywhere with the default `honor_labels: false`, a page's own label of such a name becomes
    `exported_…`.
    """
    with own_folder() as folder:
        port = free_port()
        config = folder / "prometheus.yml"
        if history:
            (folder / "history.om").write_text(history, encoding="utf-8")
            argv = [
                "promtool",
                "tsdb",
                "create-blocks-from",
                "openmetrics",
                str(folder / "history.om"),
                str(folder / "data"),
            ]
            run_program(argv, check=True)
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
        prometheus = Prometheus(component, host, port, config, scrape_seconds)
        prometheus.configure(targets, labels, more=more)
        with started(prometheus):
            yield prometheus


def check_metrics(page: str) -> str:
    """Complaints of `promtool check metrics`; empty when it accepts the page."""
    answer = run_program(["promtool", "check", "metrics"], stdin=page)
    return "" if answer.returncode == 0 else (answer.stdout + answer.stderr).strip()
