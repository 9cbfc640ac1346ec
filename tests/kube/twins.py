"""Compares what kubectl prints for two clusters, a running simulated one and a real one. The output
must be the same, except for what differs by nature.

The simulated one began a day ago and runs twenty times as fast as the wall clock, so that no test
waits for images; both have the same nodes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.contracts.simulated import simulated_server
from tests.kube.objects import cpu_node
from tests.kube.programs import program

from fairlead_sim.scenario.scenario import NodePool, Scenario
from fairlead_sim.world.driver import Driver
from fairlead_sim.world.world import World

NODES = ("twin-1", "twin-2")
SPEED = 20.0
_DAY = 86400.0

# What differs by nature: creation times, uids, addresses, and the random ends of names.
_SIGNS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"20\d\d-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} 20\d\d [\d:]+ \+0000", "DATE"),
    (r"(?<=\s)(\d+[dhms])+(?=[\s)])", "AGE"),
    # The real hash is a number of 32 bits in decimal, a letter for each digit: mostly 9 or 10, now
    # and then fewer.
    (r"\b(web|db|net)-[a-z0-9]{5,10}(-[a-z0-9]{5})\b", r"\1-HASH-POD"),
    (r"\b(web|db|net)-[a-z0-9]{6,10}\b", r"\1-HASH"),
    (r"\b(once|nightly|by-hand)-[a-z0-9]{5}\b", r"\1-POD"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"pod-template-hash=[a-z0-9]+", "pod-template-hash=HASH"),
    (r'resourceVersion: "\d+"', 'resourceVersion: "N"'),
    (r"https://127\.0\.0\.1:\d+", "https://SERVER"),
    (r"(MERGED|LIVE)-\d+", r"\1-N"),
    (r"kubectl-1\.36\.3-edit-\d+", "kubectl-edit-N"),
    (r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "STAMP"),
    (r"\b3\d{4}/TCP", "PORT/TCP"),
    (r"Warning: the simulated cluster .*\n", ""),  # see docs/reference/differences.md
    # a race in the client between the end of its own timeout and its watch's
    (r"[IWE]\d{4} [\d:.]+ +\d+ reflector\.go.*\n", ""),
    (r" {2,}|\t", " "),
    (r" +\n", "\n"),
    # the real server's allocator may notice a new Service late; other events stay and are compared
    (
        r"Events:\n.*\n.*\n Warning ClusterIPNotAllocated .* is not allocated; repairing\n(?! )",
        "Events: <none>\n",
    ),
)


def plain(text: str) -> str:
    """The text without what differs by nature."""
    for pattern, sign in _SIGNS:
        text = re.sub(pattern, sign, text)
    return text


@dataclass(frozen=True)
class Twins:
    """The two clusters, with a namespace of the same name in each."""

    kubeconfigs: Mapping[str, Path]
    scratch: Path

    def ask(
        self,
        world: str,
        *arguments: str,
        stdin: str | None = None,
        editor: str = "",
        seconds: float = 120.0,
    ) -> str:
        """The output and the exit status of `kubectl ARGUMENTS`."""
        environment = {**self._environment(world), "KUBE_EDITOR": editor}
        argv = self._argv(world, arguments)
        result = subprocess.run(
            argv,
            input=stdin,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return f"{result.stdout}{result.stderr}exit {result.returncode}\n"

    def start(self, world: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a kubectl that keeps running; its output comes character by character."""
        return subprocess.Popen(
            self._argv(world, arguments),
            stdout=subprocess.PIPE,
            env=self._environment(world),
            text=True,
            bufsize=1,
        )

    def _argv(self, world: str, arguments: Sequence[str]) -> list[str]:
        return [str(program("kubectl")), f"--kubeconfig={self.kubeconfigs[world]}", *arguments]

    def _environment(self, world: str) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.scratch), "KUBECACHEDIR": str(self.scratch / world)}

    def both(self, *arguments: str, stdin: str | None = None, editor: str = "") -> tuple[str, str]:
        """(simulated, real), without what differs by nature."""
        simulated, real = (
            plain(self.ask(world, *arguments, stdin=stdin, editor=editor))
            for world in ("simulated", "real")
        )
        return simulated, real

    def same(self, *arguments: str, stdin: str | None = None, editor: str = "") -> str:
        """What both print; fails unless it is the same."""
        simulated, real = self.both(*arguments, stdin=stdin, editor=editor)
        assert simulated == real, (
            f"$ kubectl {' '.join(arguments)}\n--- simulated\n{simulated}--- real\n{real}"
        )
        return simulated

    def walk(self, space: str, commands: Sequence[str]) -> None:
        """Run every command in both worlds. Those that begin with `~` must only succeed in both;
        the others print the same.
        """
        wrong = []
        for command in commands:
            simulated, real = self.both("-n", space, *_words(command.removeprefix("~")))
            if command.startswith("~"):
                simulated, real = simulated[simulated.rindex("exit") :], real[real.rindex("exit") :]
            if simulated != real:
                wrong.append(f"$ kubectl {command}\n--- simulated\n{simulated}--- real\n{real}")
        assert not wrong, "\n".join(wrong)


def _words(command: str) -> list[str]:
    """The words of a command line; quoted ones may have spaces."""
    return [word.replace("'", "") for word in re.findall(r"(?:'[^']*'|[^\s'])+", command)]


@contextmanager
def running_twins(folder: Path, real: Path) -> Iterator[Twins]:
    """The simulated cluster for the block; the real one, behind its kubeconfig, gets the same
    nodes.
    """
    world = World(
        Scenario(title="twins", node_pools=(NodePool(names=NODES, cpu=64, memory="512Gi"),)),
        1,
        time.time() - _DAY,
    )
    with simulated_server(
        folder, world.clock, cluster=world.cluster, written=world.logs, programs=world.programs
    ) as server:
        driver: Driver = server.do(lambda cluster: Driver(world, SPEED))
        living = asyncio.run_coroutine_threadsafe(driver.run(), server.loop)
        twins = Twins({"simulated": server.kubeconfig, "real": real}, folder)
        try:
            _join_nodes(twins)
            yield twins
        finally:
            living.cancel()
            twins.ask("real", "delete", "node", *NODES)


def _join_nodes(twins: Twins) -> None:
    items = [cpu_node(name) for name in NODES]
    answer = twins.ask(
        "real",
        "apply",
        "--server-side",
        "-f",
        "-",
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
    )
    assert answer.endswith("exit 0\n"), answer
    answer = twins.ask(
        "real",
        "wait",
        "--for=condition=Ready",
        *(f"node/{name}" for name in NODES),
        "--timeout=90s",
    )
    assert answer.endswith("exit 0\n"), answer
