"""Runs one command line in this process against a given world, and keeps its output."""

from __future__ import annotations

import argparse
import importlib
import io
import shlex
from collections.abc import Callable, Mapping
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from fairlead.cli.frame.context import (
    ClusterJobs,
    ClusterObjects,
    ClusterReader,
    ClusterServings,
    Context,
    LaptopTime,
)
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.parser import VerbModule, global_options, make_parser, split_verb
from fairlead.cli.snapshot.jobs import SnapshotJobs
from fairlead.cli.snapshot.reader import SnapshotReader
from fairlead.model.installation import Installation
from fairlead.model.installed.facts import InstallationFacts
from fairlead.model.quota.setup import BuiltInQuota, QuotaSetup
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.ports import InstallationTarget, WorkLease
from fairlead.run.machine import OwnMachine


class OneWorld:
    def __init__(
        self,
        reader: ClusterReader,
        setup: QuotaSetup | BuiltInQuota | None = None,
        facts: InstallationFacts | None = None,
        target: InstallationTarget | None = None,
    ) -> None:
        self._reader = reader
        self._setup = setup
        self._facts = facts
        self._target = target

    def reader(self) -> ClusterReader:
        return self._reader

    def jobs(self) -> ClusterJobs:
        return SnapshotJobs(self._reader)

    def objects(self) -> ClusterObjects | None:
        return None

    def servings(self) -> ClusterServings | None:
        return None

    def installation_target(self) -> InstallationTarget | None:
        return self._target

    def installation_lease(self, by: str, namespace: str = "") -> WorkLease | None:
        return None

    def installation_facts(self, choose: Callable[[str], Installation]) -> InstallationFacts | None:
        return self._facts if self._facts is None else replace(self._facts, chosen=choose(""))

    def quota_setup(self) -> QuotaSetup | BuiltInQuota | None:
        return self._setup

    def namespace(self) -> str:
        return "default"

    def console(self) -> str:
        return ""

    def laptop_clock(self, state_dir: str) -> LaptopTime:
        raise AssertionError("no laptop here")

    def run_process(self, name: str, args: argparse.Namespace) -> int:
        raise AssertionError(f"{name} is no reading command")


class KeptOutput(io.StringIO):
    """A stdout that keeps what is written, bytes as well (`cli.context.Output`)."""

    def write_bytes(self, data: bytes, /) -> object:
        return self.write(data.decode())


class Printed(Struct):
    status: int
    out: str
    err: str


def run_command(
    line: str,
    snapshot: ClusterSnapshot,
    program: str = "arena",
    sleep: Callable[[float], None] | None = None,
    env: Mapping[str, str] | None = None,
    setup: QuotaSetup | BuiltInQuota | None = None,
    facts: InstallationFacts | None = None,
    target: InstallationTarget | None = None,
    reader: ClusterReader | None = None,
    now: float = 0.0,
) -> Printed:
    """Runs `line`, which does not contain the program's name. Errors are raised as exceptions, as
    `main` receives them. `reader`: in the place of one of `snapshot`.
    """
    out, err = KeptOutput(), io.StringIO()
    verb, rest = split_verb(shlex.split(line), program)
    assert verb is not None, line
    module = cast("VerbModule", importlib.import_module(f"fairlead.cli.{verb.module}"))
    args = make_parser(module, program).parse(rest)
    messages = Messages(program, err, now=lambda: 0.0)
    read = reader or SnapshotReader(snapshot, "a snapshot of the tests")
    world = OneWorld(read, setup, facts, target)
    context = Context(
        program,
        global_options(args),
        messages,
        world,
        out,
        env or {},
        lambda: now,
        sleep or (lambda _: None),
        OwnMachine(env or {}),
    )
    status = module.run(args, context)
    return Printed(status, out.getvalue(), err.getvalue())
