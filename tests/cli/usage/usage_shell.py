"""Commands of usage over a ledger in memory."""

from __future__ import annotations

import asyncio
import importlib
import io
import shlex
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec import Struct
from tests.cli.command import KeptOutput, Printed
from tests.console.clusters import EPOCH
from tests.usage.memory_ledger import MemoryLedger

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.parser import global_options, make_parser, split_verb
from fairlead.edge.console.console_api import ConsoleApi
from fairlead.ports import UsageLedger
from fairlead.run.machine import OwnMachine

Answer = TypeVar("Answer")


class MemoryStore(Struct):
    """`UsageStore`."""

    ledger: MemoryLedger

    def ask(self, question: Callable[[UsageLedger], Awaitable[Answer]]) -> Answer:
        async def answer() -> Answer:
            return await question(self.ledger)

        return asyncio.run(answer())


class OneMachine(OwnMachine):
    def __init__(self, ledger: MemoryLedger) -> None:
        super().__init__({})
        self.ledger = ledger

    def usage_store(self, url: str, password_file: str, authority: str) -> Any:
        assert url == "sqlite:///memory"
        return MemoryStore(self.ledger)


class OneConsole:
    """`Clusters`, as far as these verbs ask."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def console_pages(self, named: str, ca_file: str) -> ConsoleApi:
        return ConsoleApi(named or self.url, lambda: self.token, ca_file=ca_file, env={})

    def namespace(self) -> str:
        return "team-a"


class Shell:
    """Runs verbs over a console, or with `is_direct` over the store. `sleep`: of the verbs."""

    sleep: Callable[[float], None] = staticmethod(lambda _: None)

    def __init__(self, ledger: MemoryLedger, url: str, token: str) -> None:
        self.ledger, self.world = ledger, OneConsole(url, token)

    def run(self, line: str, *, is_direct: bool) -> Printed:
        out, err = KeptOutput(), io.StringIO()
        verb, rest = split_verb(shlex.split(line), "fairlead")
        assert verb is not None, line
        module: Any = importlib.import_module(f"fairlead.cli.{verb.module}")
        words = [*rest, "--store", "sqlite:///memory"] if is_direct else rest
        args = make_parser(module, "fairlead").parse(words)
        context = Context(
            "fairlead",
            global_options(args),
            Messages("fairlead", err, now=lambda: 0.0),
            self.world,  # type: ignore[arg-type]
            out,
            {"USER": "root"},
            lambda: EPOCH,
            self.sleep,
            OneMachine(self.ledger),  # type: ignore[arg-type]
        )
        status = module.run(args, context)
        return Printed(status, out.getvalue(), err.getvalue())

    async def over_console(self, line: str) -> Printed:
        return await asyncio.to_thread(self.run, line, is_direct=False)

    async def over_store(self, line: str) -> Printed:
        return await asyncio.to_thread(self.run, line, is_direct=True)

    async def both(self, line: str) -> Printed:
        one, other = await self.over_console(line), await self.over_store(line)
        assert (one.status, one.out, one.err) == (other.status, other.out, other.err)
        return one
