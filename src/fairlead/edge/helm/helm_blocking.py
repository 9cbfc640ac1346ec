"""The program `helm` for commands and threads. It is looked for here; what talks to it is imported
when it is first asked, because most commands need no Helm.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fairlead.edge.connection.connection import Connection
from fairlead.errors import UserError
from fairlead.model.actions import Manifest
from fairlead.model.operations.operation import HelmRelease, HelmStep

if TYPE_CHECKING:
    from fairlead.edge.helm.helm_program import HelmProgram

PROGRAM_VARIABLE: Final = "FAIRLEAD_HELM"
"""Names the program; without it `helm` of PATH is used."""
Answer = TypeVar("Answer")


def find_helm(environment: Mapping[str, str] = os.environ) -> str:
    """The path of the program; "" if there is none.

    Raises UserError if FAIRLEAD_HELM names no program.
    """
    import shutil

    named = environment.get(PROGRAM_VARIABLE, "")
    found = shutil.which(named or "helm", path=environment.get("PATH"))
    if named and not found:
        what = f"{PROGRAM_VARIABLE} is `{named}`, and that is no program"
        raise UserError(what, "name the program of Helm 3 or Helm 4 by its path")
    return str(Path(found).absolute()) if found else ""


class HelmBlocking:
    """Questions to the program. `environment`: in which it is looked for. All raise as
    `ports.Helm`.
    """

    def __init__(self, connection: Connection, environment: Mapping[str, str]) -> None:
        self._connection = connection
        self._environment = environment

    @property
    def is_there(self) -> bool:
        """Raises UserError if FAIRLEAD_HELM names no program."""
        return bool(find_helm(self._environment))

    def render(self, step: HelmStep) -> tuple[Manifest, ...]:
        """See `ports.Helm.render`."""
        return self._asked(lambda helm: helm.render(step))

    def release(self, name: str, namespace: str) -> HelmRelease | None:
        """See `ports.Helm.release`."""
        return self._asked(lambda helm: helm.release(name, namespace))

    def written(self, release: HelmRelease) -> tuple[Manifest, ...]:
        """See `HelmProgram.written`."""
        return self._asked(lambda helm: helm.written(release))

    def releases_of(self, charts: Collection[str]) -> tuple[HelmRelease, ...]:
        """Those of the charts, each with what its history adds."""

        async def found(helm: HelmProgram) -> tuple[HelmRelease, ...]:
            listed = [each for each in await helm.releases() if each.chart in charts]
            read = [await helm.release(each.name, each.namespace) for each in listed]
            return tuple(each for each in read if each is not None)

        return self._asked(found)

    def _asked(self, ask: Callable[[HelmProgram], Coroutine[Any, Any, Answer]]) -> Answer:
        import asyncio

        from fairlead.edge.helm.helm_program import HelmProgram

        return asyncio.run(ask(HelmProgram(self._connection, self._environment)))
