"""What Fairlead costs at a size: requests, bytes, CPU and memory of each component as formulas."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file, on_this_machine, rights_of_agents
from tests.kube.extender import scheduler_for
from tests.kube.front_door import open_door
from tests.kube.kubectl import KubectlError
from tests.kube.objects import namespace
from tests.kube.quota_line import enforce, install
from tests.kube.servers import FAIRLEAD, Server, environment
from tests.waiting import wait_until

from bench.nodes import PlayedKubelet
from bench.pages import simulated_page
from bench.support.audit import AuditLog
from bench.support.company import LOAD, Company, passing
from bench.support.doors import Loop, running_loop
from bench.support.formulas import CONSTANT, Formula, fitted
from bench.support.options import options
from bench.support.parts import NODE_SPACE, SYSTEM, Part, Usage
from bench.support.processes import cpu_seconds, memory
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.api_failure import Unreachable
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import PODS
from fairlead.errors import FairleadError

AGENT_NODE: Final = "agent-node"
SCRAPES: Final = 5
"""How often a page is read for its cost."""
LOOK_SECONDS: Final = 3.0
"""Between two looks for pods of the load that have ended."""
STILL_SECONDS: Final = 6.0
WEBHOOKS: Final = ("admission-webhook.yaml", "gpushare-webhook.yaml", "quota-webhook.yaml")
ACCOUNTS: Final = {
    SYSTEM: (
        "fairlead-admission-webhook",
        "fairlead-cluster-exporter",
        "fairlead-quota-controller",
        "fairlead-reader",
        "fairlead-scheduler",
    ),
    NODE_SPACE: ("fairlead-node-agent", "fairlead-gpu-exporter"),
}
LEASES: Final = {
    "extender": "fairlead-gpushare",
    "quota controller": "fairlead-quota",
    "cluster exporter": "fairlead-cluster-exporter",
}
WITHOUT_LEASES: Final = {
    "kwok": ("--node-lease-duration-seconds=0",),
    "kube-controller-manager": ("--node-monitor-grace-period=5h",),
}
"""Leases of nodes concern no component of Fairlead, and would cost a small machine more than all
that is measured.
"""
ON_NODES: Final = ("node agent", "GPU exporter")
SCHEDULER: Final = "kube-scheduler"
REQUESTS_AIM, MEMORY_AIM_MIB = 2.0, 700
REPORT_SECONDS: Final = 300
"""Mean time between two reports of a node that does not change: a kubelet's default. KWOK's own
stage sends those of all nodes of one age at once.
"""
MEMORY: Final = "memory, MiB"
MEMORY_WITH_PAGES: Final = "memory with values of GPUs, MiB"
FILES: Final = "memory that maps files, MiB"
"""Python's and other libraries: processes of one node share it."""
IDLE_CPU: Final = "idle: CPU ms/s"
IDLE_BYTES: Final = "idle: bytes received/s"
IDLE_REQUESTS: Final = "idle: requests/s"
POD_CPU: Final = "a pod: CPU ms"
POD_BYTES: Final = "a pod: kB received"
POD_REQUESTS: Final = "a pod: requests"
SCRAPE_CPU: Final = "a scrape: CPU ms"
PAGE_CPU: Final = "a page of a GPU exporter: CPU ms"
SCRAPE_CPU_WITH_PAGES: Final = "a scrape with values of GPUs: CPU ms"
REPORTS: Final = "reports of nodes a second"
AMOUNTS: Final = {
    MEMORY: ("nodes", "pods"),
    MEMORY_WITH_PAGES: ("nodes", "pods"),
    FILES: (),
    IDLE_CPU: ("nodes", "pods"),
    IDLE_BYTES: (REPORTS,),
    IDLE_REQUESTS: (),
    POD_CPU: ("nodes", "pods"),
    POD_BYTES: (),
    POD_REQUESTS: (),
    SCRAPE_CPU: ("nodes", "pods"),
    PAGE_CPU: (),
    SCRAPE_CPU_WITH_PAGES: ("nodes", "pods"),
}
"""What each figure may depend on."""
CLUSTER: Final = "cluster"
Figures = dict[tuple[str, str], float]
"""By component and figure."""


class Size(NamedTuple):
    nodes: int
    pods: int

    @property
    def point(self) -> dict[str, float]:
        """Pods with those of GPU exporters."""
        return {"nodes": self.nodes, "pods": self.pods + self.nodes}

    def __str__(self) -> str:
        return f"{self.nodes:,} nodes / {self.pods:,} pods"


def _sizes(text: str) -> list[Size]:
    return [Size(*map(int, each.split("x"))) for each in text.split(",") if each]


def measure_scale() -> None:
    """Requests, bytes, CPU and memory of each component: fitted at sizes, checked at a larger one.

        python -m bench scale [--sizes 200x2000,200x4000,500x5000] [--check 1000x10000]
            [--seconds 60] [--rate 5] [--save FILE]
        python -m bench scale --read FILE

    A real control plane with KWOK's nodes grows from size to size (nodes x pods). At each size all
    components start, two of those that have a standby, under their shipped accounts. Idle: nothing
    happens but what nodes report. Load: pods that quota admits, the
    extender places on a shared card, run for a second and are deleted. Then the pages of GPU
    exporters, one for each node with eight cards, are read by two cluster exporters, and by the
    console. Bytes are what passes to the API server's port; requests are of its audit log, those
    about Leases left out; an open watch counts once in its mean length (450 s, on nodes 2,700 s).
    """
    parser = options(measure_scale)
    parser.add_argument("--sizes", type=_sizes, default=_sizes("200x2000,200x4000,500x5000"))
    parser.add_argument("--check", type=_sizes, default=_sizes("1000x10000"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of each window")
    parser.add_argument("--rate", type=float, default=5.0, help="pods a second of the load")
    parser.add_argument("--save", type=Path, help="where all figures go as JSON")
    parser.add_argument("--read", type=Path, help="print the tables of a saved file, and end")
    args = parser.parse_args()
    if args.read:
        _print_all(_kept(args.read), len(args.sizes))
        return
    found: list[tuple[Size, Figures]] = []
    with _stage(max(each.nodes for each in (*args.sizes, *args.check))) as stage:
        for size in (*args.sizes, *args.check):
            stage.company.grow(*size)
            stage.rest()
            print(f"\n{size}: made; load {os.getloadavg()[0]:.1f}", flush=True)
            found.append((size, stage.measured(args.seconds, args.rate)))
            _save(args.save, found)
    _print_all(found, len(args.sizes))


def _print_all(found: Sequence[tuple[Size, Figures]], fits: int) -> None:
    """The first `fits` make the formulas, the others are compared with them."""
    formulas = _formulas(found[:fits])
    for size, figures in found[fits:]:
        _print(formulas, size, figures)
        _print_sums(size, figures)


def _formulas(found: Sequence[tuple[Size, Figures]]) -> dict[tuple[str, str], Formula]:
    points = [_point(size, figures) for size, figures in found]
    return {
        key: fitted(points, [figures[key] for _, figures in found], AMOUNTS[key[1]])
        for key in found[0][1]
        if key[0] != CLUSTER and all(key in figures for _, figures in found)
    }


def _point(size: Size, figures: Figures) -> dict[str, float]:
    return {**size.point, REPORTS: figures[CLUSTER, REPORTS]}


def _print(formulas: Mapping[tuple[str, str], Formula], size: Size, figures: Figures) -> None:
    """A table for each figure, in Markdown."""
    print(f"\n{size}")
    for title in AMOUNTS:
        rows = {part: each for (part, figure), each in formulas.items() if figure == title}
        print(f"\n**{title}**\n")
        print("| component | formula | predicted | measured | deviation |")
        print("|---|---|---|---|---|")
        for part, formula in rows.items():
            predicted, was = formula.at(_point(size, figures)), figures[part, title]
            off = f"{predicted / was - 1:+.0%}" if was else "–"
            cells = (part, _text(formula), _number(predicted), _number(was), off)
            print(f"| {' | '.join(cells)} |")


def _print_sums(size: Size, figures: Figures) -> None:
    """What an idle installation costs in all: two of everything but the console."""
    agents = size.nodes * sum(figures[each, IDLE_REQUESTS] for each in ON_NODES)
    others = sum(
        value
        for (part, figure), value in figures.items()
        if figure == IDLE_REQUESTS and part not in ON_NODES
    )
    print(f"\nidle requests/s: {others:.2f} + on nodes {agents:.2f} (<= {REQUESTS_AIM:g})")
    for title, most in (("without values of GPUs", MEMORY), ("with them", MEMORY_WITH_PAGES)):
        mib = sum(
            max(value, figures.get((part, most), 0.0))
            for (part, figure), value in figures.items()
            if figure == MEMORY and part not in (*ON_NODES, SCHEDULER)
        )
        files = [
            value
            for (part, figure), value in figures.items()
            if figure == FILES and part not in ON_NODES
        ]
        print(f"memory of all Fairlead's control-plane processes {title}: {mib:.0f} MiB")
        if files:
            once = mib - sum(files) + max(files)
            print(f"on one node, which counts the pages of files once: {once:.0f} MiB")
    print(f"(<= {MEMORY_AIM_MIB}); each kube-scheduler {figures[SCHEDULER, MEMORY]:.0f} MiB more")


def _text(formula: Formula) -> str:
    terms = [_term(name, factor) for name, factor in formula.factors.items() if factor]
    return " + ".join(terms) or "0"


def _term(amount: str, factor: float) -> str:
    if amount == CONSTANT:
        return _number(factor)
    if amount == REPORTS:
        return f"{_number(factor)} × {amount}"
    return f"{_number(1000 * factor)} × 1,000 {amount}"


def _number(value: float) -> str:
    """Three digits.

    >>> _number(1234.5), _number(12.34), _number(0.01234)
    ('1,234', '12.3', '0.0123')
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _save(path: Path | None, found: Sequence[tuple[Size, Figures]]) -> None:
    if path is not None:
        rows = [
            {"size": size, "figures": [[*key, value] for key, value in figures.items()]}
            for size, figures in found
        ]
        path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _kept(path: Path) -> list[tuple[Size, Figures]]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [
        (Size(*row["size"]), {(part, figure): value for part, figure, value in row["figures"]})
        for row in rows
    ]


# --- a larger cluster, simulated ------------------------------------------------------------------


def measure_scale_simulated() -> None:
    """Memory of the components beside 5,000 simulated nodes, against the formulas of `scale`.

        python -m bench scale_simulated --read FILE [--scenario large] [--seconds 30]

    The laptop serves the cluster; each component follows it as a process of its own, one after the
    other. The laptop's time goes on, so only memory is compared.
    """
    parser = options(measure_scale_simulated)
    parser.add_argument("--read", type=Path, required=True, help="what `scale --save` wrote")
    parser.add_argument("--sizes", type=int, default=3, help="how many of its sizes make formulas")
    parser.add_argument("--scenario", default="large")
    parser.add_argument("--seconds", type=float, default=30.0, help="after it is ready")
    args = parser.parse_args()
    formulas = _formulas(_kept(args.read)[: args.sizes])
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name, ExitStack() as leaving:
        folder = Path(name)
        ready = folder / "ready.json"
        ports = ("--port=0", "--gpu-exporter-port=0", "--cluster-exporter-port=0", "--api-port=0")
        asked = (f"--scenario={args.scenario}", f"--ready-file={ready}", "--sign-in=false")
        argv = [*FAIRLEAD, "up", *asked, *ports]
        own = {**environment(), "XDG_STATE_HOME": name}
        laptop = Component("laptop", argv, folder / "laptop.log", own)
        leaving.callback(laptop.stop)
        laptop.start()
        laptop.wait_until(ready.exists, 900.0)
        kubeconfig = json.loads(ready.read_text(encoding="utf-8"))["kubeconfig"]
        counts = [_count_of(kubeconfig, each) for each in ("nodes", "pods")]
        point = dict(zip(("nodes", "pods"), map(float, counts), strict=True))
        print(f"{counts[0]:,} nodes, {counts[1]:,} pods, simulated; {MEMORY}", flush=True)
        print("| component | formula | predicted | measured | deviation |\n|---|---|---|---|---|")
        for part, words in SIMULATED.items():
            argv = [*FAIRLEAD, *words, f"--kubeconfig={kubeconfig}"]
            with running_part(part, argv, folder) as pid:
                time.sleep(args.seconds)
                was = memory(pid, "VmRSS")
            formula = formulas[part, MEMORY]
            predicted = formula.at(point)
            cells = (
                _text(formula),
                _number(predicted),
                _number(was),
                f"{predicted / was - 1:+.0%}",
            )
            print(f"| {part} | {' | '.join(cells)} |", flush=True)


SIMULATED: Final = {
    "cluster exporter": ("cluster-exporter", "--gpu-source=none"),
    "console": ("console", "--gpu-source=none"),
    "extender": ("scheduler-extender",),
}
"""A laptop enforces quota itself, and another quota controller would wait for its Lease."""


@contextmanager
def running_part(name: str, argv: Sequence[str], folder: Path) -> Iterator[int]:
    """The process, ready; its id."""
    port = free_port()
    listening = [*argv, f"--listen=127.0.0.1:{port}"]
    component = Component(name, listening, folder / f"{name}.log", environment())
    try:
        component.start()
        component.wait_until(Server(component, f"http://127.0.0.1:{port}").is_ready, 600.0)
        yield component.pid
    finally:
        component.stop()


def _count_of(kubeconfig: str, plural: str) -> int:
    connection = find_connection(kubeconfig)
    assert connection is not None
    request = ApiRequest("list", "GET", f"/api/v1/{plural}?limit=1")
    ends = time.monotonic() + 300
    while True:
        try:
            found = json.loads(KubeBlocking(connection).send(request).body)
            break
        except Unreachable:  # a laptop that has just read 50,000 pods is busy
            if time.monotonic() > ends:
                raise
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0)


# --- the stage ------------------------------------------------------------------------------------


class Stage:
    """A control plane with a company, and what stays from size to size."""

    def __init__(
        self, plane: ControlPlane, loop: Loop, company: Company, page_port: int, kubelet: Path
    ) -> None:
        self.company = company
        self._plane = plane
        self._loop = loop
        self._page_port = page_port
        self._kubelet = kubelet
        self._audit = AuditLog(plane.audit_log)
        self._round = 0

    def rest(self) -> None:
        """Wait until KWOK runs all pods."""
        path = "/api/v1/pods?limit=1&fieldSelector=status.phase%3DPending"

        def waiting() -> list[Any]:
            found: list[Any] = json.loads(self._plane.admin.run("get", "--raw", path))["items"]
            return found

        wait_until(lambda: f"no pod waits: {waiting()}", lambda: not waiting(), 1800.0, 2.0)

    def measured(self, seconds: float, rate: float) -> Figures:
        self._round += 1
        figures: Figures = {}
        with ExitStack() as leaving:
            parts = self._in_roles(_ready(self._all_parts(leaving)))
            self._start_scheduler(parts["extender"], leaving)
            wait_until("the tree is enforced", self._is_enforced, 600.0, 1.0)
            self._settle()
            self._idle(parts, seconds, figures)
            self._loaded(parts, seconds, rate, figures)
            self._scrape(parts, SCRAPE_CPU, figures)
        kinds = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")
        for kind in kinds:
            self._plane.admin.run("delete", kind, "-l", "app.kubernetes.io/part-of=fairlead")
        with ExitStack() as leaving:
            exporters = self._in_roles(_ready(self._exporters(leaving, pages=True)))
            self._pages(exporters, seconds, figures)
        with ExitStack() as leaving:
            console = _ready({"console": self._console(leaving, pages=True)})
            self._pages(console, seconds, figures)
        return figures

    # --- components -------------------------------------------------------------------------------

    def _all_parts(self, leaving: ExitStack) -> dict[str, Part]:
        """Started, two of those that have a standby."""
        parts: dict[str, Part] = {}
        door = leaving.enter_context(open_door(0))
        hooks = [each for file in WEBHOOKS for each in of_file(file)]
        self._plane.admin.apply([on_this_machine(each, door.port) for each in hooks])
        for suffix in ("", ", second"):
            part = self._part(
                leaving,
                f"webhook{suffix}",
                "fairlead-admission-webhook",
                ("admission-webhook", f"--namespace={SYSTEM}", f"--node-namespace={NODE_SPACE}"),
                ready_line="certificate: another one is shown",
            )
            door.backend = door.backend or part.port
            parts[f"webhook{suffix}"] = part
        for suffix in ("", ", standby"):
            parts[f"extender{suffix}"] = self._part(
                leaving,
                f"extender{suffix}",
                "fairlead-scheduler",
                ("scheduler-extender", f"--lease-namespace={SYSTEM}"),
                is_one_of_two=True,
            )
            parts[f"quota controller{suffix}"] = self._part(
                leaving,
                f"quota controller{suffix}",
                "fairlead-quota-controller",
                (
                    "quota-controller",
                    f"--lease-namespace={SYSTEM}",
                    f"--namespace={SYSTEM}",
                    f"--node-namespace={NODE_SPACE}",
                ),
                is_one_of_two=True,
            )
        parts |= self._exporters(leaving, pages=False)
        parts["console"] = self._console(leaving, pages=False)
        node = f"--kubelet-dir={self._kubelet}"
        gpus = ("--backend=sim", "--sim-gpus=8xTesla-T4")
        state = self._kubelet.parent
        parts["node agent"] = self._part(
            leaving,
            "node agent",
            "fairlead-node-agent",
            (
                *("device-plugin", f"--node={AGENT_NODE}", node, *gpus, "--test-image=none"),
                *(f"--cdi-dir={state / 'cdi'}", f"--state-dir={state / 'state'}"),
                *(f"--run-dir={state / 'run'}", f"--namespace={NODE_SPACE}"),
            ),
            node=AGENT_NODE,
        )
        parts["GPU exporter"] = self._part(
            leaving,
            "GPU exporter",
            "fairlead-gpu-exporter",
            ("gpu-exporter", "--kubernetes", "--kmsg=off", node, *gpus),
            node=AGENT_NODE,
        )
        return parts

    def _is_enforced(self) -> bool:
        """A slow machine's webhook may not answer in time: then it is asked again."""
        try:
            enforce(self._plane, self.company.root, adopts_running=True)
        except KubectlError as error:
            if "deadline exceeded" not in str(error):
                raise
            return False
        return True

    def _start_scheduler(self, extender: Part, leaving: ExitStack) -> None:
        scheduler = scheduler_for(
            self._plane, extender.port, f"scheduler-{self._round}", backoff_seconds=1
        )
        leaving.callback(scheduler.stop)
        scheduler.start()
        self.scheduler: Component = scheduler

    def _in_roles(self, parts: dict[str, Part]) -> dict[str, Part]:
        """Pairs exchanged where the second has the Lease: a slow machine hands some over."""
        named = dict(parts)
        for name, lease in LEASES.items():
            if name in parts and self._holder(lease) == parts[f"{name}, standby"].name:
                named[name], named[f"{name}, standby"] = named[f"{name}, standby"], named[name]
        return named

    def _holder(self, lease: str) -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/{lease}"
        found = json.loads(self._plane.admin.run("get", "--raw", path))
        return str(found["spec"].get("holderIdentity") or "")

    def _exporters(self, leaving: ExitStack, *, pages: bool) -> dict[str, Part]:
        return {
            f"cluster exporter{suffix}": self._part(
                leaving,
                f"cluster exporter{suffix}",
                "fairlead-cluster-exporter",
                (
                    "cluster-exporter",
                    "--leader-elect",
                    *_source(pages),
                    f"--lease-namespace={SYSTEM}",
                ),
                is_one_of_two=True,
            )
            for suffix in ("", ", standby")
        }

    def _console(self, leaving: ExitStack, *, pages: bool) -> Part:
        return self._part(leaving, "console", "fairlead-reader", ("console", *_source(pages)))

    def _part(
        self,
        leaving: ExitStack,
        title: str,
        account: str,
        words: Sequence[str],
        *,
        is_one_of_two: bool = False,
        node: str = "",
        ready_line: str = "",
    ) -> Part:
        name = f"{title.replace(', ', '-').replace(' ', '-')}-{self._round}-{time.monotonic_ns()}"
        more = (f"--identity={name}",) if is_one_of_two else ()
        part = Part(
            self._plane,
            self._loop,
            name,
            account,
            (*words, *more),
            node=node,
            ready_line=ready_line,
        )
        leaving.callback(part.stop)
        part.component.start()
        return part

    def _settle(self) -> None:
        """Wait until no component sends more than Lease renewals and watches."""
        before, since, began = self._audit.total(), time.monotonic(), time.monotonic()
        while time.monotonic() < since + STILL_SECONDS:
            time.sleep(1)
            now = self._audit.total()
            if now > before + 2:
                before, since = now, time.monotonic()
            if time.monotonic() > began + 900:
                raise TimeoutError("the components do not come to rest")
        print(f"  at rest after {since - began:.0f} s", flush=True)

    # --- windows ----------------------------------------------------------------------------------

    def _idle(self, parts: Mapping[str, Part], seconds: float, figures: Figures) -> None:
        asked_before = {name: part.named_requests(self._audit) for name, part in parts.items()}
        reports = self._reports()
        spent = self._window(parts, seconds)
        figures[CLUSTER, REPORTS] = (self._reports() - reports) / seconds
        for name, use in spent.items():
            part = parts[name]
            figures[name, MEMORY], figures[name, FILES] = part.mib, part.mib_of_files
            figures[name, IDLE_CPU] = 1000 * use.cpu / seconds
            figures[name, IDLE_BYTES] = use.down / seconds
            watches = part.open_watches(self._audit) / part.watch_seconds
            figures[name, IDLE_REQUESTS] = use.requests.others / seconds + watches
        figures[SCHEDULER, MEMORY] = memory(self.scheduler.pid, "VmRSS")
        self._print_figures("idle", figures)
        for name, part in parts.items():
            now = part.named_requests(self._audit)
            asked = {
                title: count - asked_before[name].get(title, 0) for title, count in now.items()
            }
            print(f"    {name}: {part.open_watches(self._audit)} watches; {_most(asked)}")

    def _loaded(
        self, parts: Mapping[str, Part], seconds: float, rate: float, figures: Figures
    ) -> None:
        """From the first pod's creation until the last is gone: a slow machine loses none."""
        pods = round(rate * seconds)
        before = {name: part.usage(self._audit) for name, part in parts.items()}
        began = time.monotonic()
        _live(self._plane, pods, rate)
        self._settle()
        took = time.monotonic() - began
        print(f"  load: {pods} pods in {took:.0f} s", flush=True)
        for name, part in parts.items():
            use = _difference(part.usage(self._audit), before[name])
            idle_cpu, idle_bytes = figures[name, IDLE_CPU], figures[name, IDLE_BYTES]
            idle_requests = figures[name, IDLE_REQUESTS] - part.open_watches(self._audit) / (
                part.watch_seconds
            )
            figures[name, POD_CPU] = max(0.0, 1000 * use.cpu - idle_cpu * took) / pods
            figures[name, POD_BYTES] = max(0.0, use.down - idle_bytes * took) / pods / 1000
            figures[name, POD_REQUESTS] = (
                max(0.0, use.requests.others - idle_requests * took) / pods
            )
        self._print_figures("a pod", figures)

    def _pages(self, parts: Mapping[str, Part], seconds: float, figures: Figures) -> None:
        wanted = self._pages_read() + 3 * self.company.nodes * len(parts)
        wait_until("all pages were read", lambda: self._pages_read() >= wanted, 600.0, 1.0)
        before = self._pages_read()
        spent = self._window(parts, seconds)
        pages = (self._pages_read() - before) / len(parts)
        rate = pages / seconds
        print(f"  {', '.join(parts)}: {rate:.0f} pages a second each", flush=True)
        for name, use in spent.items():
            figures[name, MEMORY_WITH_PAGES] = parts[name].mib
            figures[name, PAGE_CPU] = (
                max(0.0, 1000 * use.cpu - figures[name, IDLE_CPU] * seconds) / pages
            )
        self._print_figures("pages", figures)
        idle = {name: 1000 * use.cpu / seconds for name, use in spent.items()}
        self._scrape(parts, SCRAPE_CPU_WITH_PAGES, figures, idle)

    def _scrape(
        self,
        parts: Mapping[str, Part],
        title: str,
        figures: Figures,
        idle: Mapping[str, float] | None = None,
    ) -> None:
        """What a read of the component's own page costs it, one after the other, as Prometheus
        reads them. `idle`: CPU ms a second that it uses anyway.
        """
        for name, part in parts.items():
            if not part.server.url.startswith("http://"):
                continue
            without = figures[name, IDLE_CPU] if idle is None else idle[name]
            before, began = cpu_seconds(part.component.pid), time.monotonic()
            for _ in range(SCRAPES):
                part.server.get("/metrics", 60.0)
                time.sleep(1)
            spent = 1000 * (cpu_seconds(part.component.pid) - before)
            took = time.monotonic() - began
            figures[name, title] = max(0.0, spent - without * took) / SCRAPES

    def _reports(self) -> float:
        """Reports of nodes that the API server has taken since its start."""
        page = self._plane.admin.run("get", "--raw", "/metrics")
        return sum(
            float(line.rpartition(" ")[2])
            for line in page.splitlines()
            if line.startswith("apiserver_request_total{")
            and 'resource="nodes"' in line
            and 'subresource="status"' in line
        )

    def _window(self, parts: Mapping[str, Part], seconds: float) -> dict[str, Usage]:
        before = {name: part.usage(self._audit) for name, part in parts.items()}
        ends = time.monotonic() + seconds
        time.sleep(max(0.0, ends - time.monotonic()))
        after = {name: part.usage(self._audit) for name, part in parts.items()}
        return {name: _difference(after[name], before[name]) for name in parts}

    def _pages_read(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._page_port}/read") as answer:
            return int(answer.read())

    def _print_figures(self, what: str, figures: Figures) -> None:
        print(f"  {what}; load {os.getloadavg()[0]:.1f}", flush=True)
        for (part, figure), value in figures.items():
            if figure.startswith(what) or (what == "idle" and figure == MEMORY):
                print(f"    {part:28} {figure:34} {_number(value):>10}")
        if what == "pages":
            for (part, figure), value in figures.items():
                if figure in (PAGE_CPU, MEMORY_WITH_PAGES):
                    print(f"    {part:28} {figure:34} {_number(value):>10}", flush=True)


def _most(asked: Mapping[str, int]) -> str:
    """What was asked most often."""
    rows = sorted(asked.items(), key=lambda each: -each[1])
    return ", ".join(f"{count} {title}" for title, count in rows[:6] if count)


def _ready(parts: dict[str, Part]) -> dict[str, Part]:
    """The same, when all serve."""
    for each in parts.values():
        each.wait_until_ready()
    return parts


def _difference(after: Usage, before: Usage) -> Usage:
    requests = type(after.requests)(
        *(one - other for one, other in zip(after.requests, before.requests, strict=True))
    )
    return Usage(after.cpu - before.cpu, after.down - before.down, after.up - before.up, requests)


def _source(pages: bool) -> tuple[str, ...]:
    return (f"--gpu-exporter-namespace={NODE_SPACE}",) if pages else ("--gpu-source=none",)


@contextmanager
def _stage(most_nodes: int) -> Iterator[Stage]:
    users = [
        f"system:serviceaccount:{space}:{name}"
        for space, names in ACCOUNTS.items()
        for name in names
    ]
    with (
        running_loop() as loop,
        running_control_plane(audited=users, flags=WITHOUT_LEASES) as plane,
        ExitStack() as leaving,
    ):
        _spread_reports(plane)
        install(plane)
        files = (
            *("reader.yaml", "cluster-exporter.yaml", "gpushare-extender.yaml"),
            *("gpu-exporter-rights.yaml",),
        )
        accounts = [each for file in files for each in of_file(file)]
        account = [each for each in of_file("gpu-exporter.yaml") if each["kind"] != "DaemonSet"]
        deployments = ("Deployment", "PodDisruptionBudget", "NetworkPolicy")
        plane.admin.apply(
            [
                each
                for each in (*accounts, *account, *rights_of_agents())
                if each["kind"] not in deployments
            ]
        )
        plane.admin.apply([namespace(LOAD), _agent_node()])
        port = free_port()
        company = Company(plane, most_nodes, port)
        folder = plane.folder / "pages"
        folder.mkdir()
        page, uuids = folder / "page", folder / "uuids.json"
        page.write_text(simulated_page(str(folder), "dcgm,legacy"), encoding="utf-8")
        uuids.write_text(json.dumps(company.uuids()), encoding="utf-8")
        argv = [sys.executable, "-m", "bench.support.page_server", str(page), str(uuids), str(port)]
        server = Component("pages", argv, plane.logs / "pages.log")
        leaving.callback(server.stop)
        server.start()
        kubelet = PlayedKubelet(plane.folder / "node" / "kubelet")
        state = plane.folder / "node" / "state"
        state.mkdir(parents=True)
        (state / "runtime.json").write_text(
            json.dumps({"kubelet v1.36.3 containerd://2.2.9": True}), encoding="utf-8"
        )
        loop.run(kubelet.start())
        leaving.callback(lambda: loop.run(kubelet.stop()))
        yield Stage(plane, loop, company, port, plane.folder / "node" / "kubelet")


def _spread_reports(plane: ControlPlane) -> None:
    """Let KWOK's nodes report at random times, as nodes of different ages do."""
    stages = plane.folder / "stages.yaml"
    found = list(yaml.safe_load_all(stages.read_text(encoding="utf-8")))
    (beat,) = (each for each in found if each["metadata"]["name"] == "node-heartbeat-with-lease")
    beat["spec"]["delay"] = {
        "durationMilliseconds": 1,
        "jitterDurationMilliseconds": 2000 * REPORT_SECONDS,
    }
    plane.components["kwok"].stop()
    stages.write_text(yaml.safe_dump_all(found, sort_keys=False), encoding="utf-8")
    plane.start_component("kwok")


def _agent_node() -> dict[str, Any]:
    """The node of the agent and the exporter of which the costs are measured."""
    info = {"kubeletVersion": "v1.36.3", "containerRuntimeVersion": "containerd://2.2.9"}
    more = (
        "architecture bootID kernelVersion kubeProxyVersion machineID operatingSystem osImage "
        "systemUUID"
    )
    blank = dict.fromkeys(more.split(), "")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": AGENT_NODE, "labels": {"cgpu": "true"}},
        "status": {"nodeInfo": {**blank, **info}},
    }


# --- what users do --------------------------------------------------------------------------------


def _live(plane: ControlPlane, count: int, rate: float) -> None:
    """Create `rate` pods a second; each is deleted when it has ended. Returns when all are gone."""
    connection = find_connection(str(plane.kubeconfig))
    assert connection is not None
    creating, deleting = (KubeBlocking(connection) for _ in range(2))
    failed: list[FairleadError] = []

    def create() -> None:
        due = time.monotonic()
        try:
            for number in range(count):
                time.sleep(max(0.0, due - time.monotonic()))
                creating.create(PODS, passing(number), LOAD)
                due += 1 / rate
        except FairleadError as error:
            failed.append(error)

    thread = threading.Thread(target=create, daemon=True)
    thread.start()
    limit, gone = time.monotonic() + 10 * count / rate + 300, 0
    while gone < count:
        assert not failed, failed
        if time.monotonic() > limit:
            raise TimeoutError(f"{gone} of {count} pods are gone")
        time.sleep(LOOK_SECONDS)
        path = f"/api/v1/namespaces/{LOAD}/pods?fieldSelector=status.phase%3DSucceeded"
        for pod in json.loads(plane.admin.run("get", "--raw", path))["items"]:
            if "deletionTimestamp" not in pod["metadata"]:
                deleting.delete(PODS, pod["metadata"]["name"], LOAD)
                gone += 1
    thread.join()
