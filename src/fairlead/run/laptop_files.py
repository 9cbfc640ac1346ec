"""The files of a running laptop: kubeconfigs, the state file for commands, the ready file."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import to_builtins

from fairlead import settings
from fairlead.cli.frame.messages import Messages
from fairlead.edge.connection.connection import LaptopPages
from fairlead.edge.files import laptop_state
from fairlead.edge.files.own_files import (
    FileKind,
    OwnFile,
    absolute,
    json_with,
    remove_folder,
    render_json,
    replace_whole,
)
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.run.laptop_kubeconfig import OWN_KUBECONFIG, SharedKubeconfig, end_kubeconfig
from fairlead_sim.api.credentials import ServerCredentials, kubeconfig_entries, render_kubeconfig

STATE_FILE: Final = FileKind(
    "state file", laptop_state.FILE, json_with("pid", "kubeconfig", "console")
)
READY_FILE: Final = FileKind(
    "ready file",
    "ready.json",
    json_with("kubeconfig", "console", "cluster_exporter", "gpu_exporter"),
)


class LaptopFiles:
    """Files that a laptop leaves on disk while it runs.

    Files that the user named must be writable; for others a warning is enough. The laptop's own
    kubeconfig is in the state directory; the kubeconfig that the user named may contain other
    clusters, too.
    """

    def __init__(
        self, args: argparse.Namespace, env: Mapping[str, str], messages: Messages
    ) -> None:
        default = laptop_state.laptop_home(env).absolute()
        laptop_state.forget_killed(default)
        home = _own_home(absolute(args.state_dir) if args.state_dir else default, messages)
        self._own = OwnFile(home / laptop_state.KUBECONFIG, OWN_KUBECONFIG)
        self._state = OwnFile(home / laptop_state.FILE, STATE_FILE, 0o644)
        is_elsewhere = default not in (home, *home.parents)
        self._sign = (
            OwnFile(laptop_state.own_folder(default) / laptop_state.FILE, STATE_FILE, 0o644)
            if is_elsewhere
            else None
        )
        """The sign of a laptop with another state directory, for commands without a directory."""
        self._ready = (
            OwnFile(absolute(args.ready_file), READY_FILE, 0o644) if args.ready_file else None
        )
        self._named = (
            SharedKubeconfig(absolute(args.kubeconfig), is_made_current=args.use_context)
            if args.kubeconfig
            else None
        )
        self._is_own_named = self._named is not None and os.path.realpath(
            self._named.path
        ) == os.path.realpath(self._own.path)
        self._env = env
        self._messages = messages
        self._temporary: Path | None = None
        self._is_own_written = False
        self.kubeconfig: Path | None = None
        """The kubeconfig for users and programs: it opens the laptop without naming a context."""

    @property
    def shared(self) -> Path | None:
        """The kubeconfig with the laptop's context beside another current one."""
        return (
            self._named.path
            if self._named is not None and not self._named.opens_the_laptop
            else None
        )

    def check(self) -> None:
        """Raises UserError for a file that the user named and that must not be replaced."""
        if self._ready is not None:
            self._ready.check()
        if self._named is not None:
            self._named.check(laptop_state.running_laptops(self._env))

    def write_kubeconfig(
        self, server: str, credentials: ServerCredentials, pages: LaptopPages
    ) -> None:
        """Write to the state directory, else among the temporary files.

        kubectl must work on a full disk, too.
        """
        entries = kubeconfig_entries(server, credentials, {settings.LAPTOP_EXTENSION: pages})
        is_opened_by_named = False
        if self._named is not None:
            self._named.write(to_builtins(entries))
            is_opened_by_named = self._named.opens_the_laptop
        if not self._is_own_named:
            self._write_own(render_kubeconfig(entries), is_needed=not is_opened_by_named)
        if self._named is not None and is_opened_by_named:
            self.kubeconfig = self._named.path

    def _write_own(self, text: bytes, *, is_needed: bool) -> None:
        try:
            self._own.write(text, with_folder=True)
            self.kubeconfig, self._is_own_written = self._own.path, True
        except FairleadError as error:
            if is_needed:
                self.kubeconfig = self._write_temporary(text)
                instead = (
                    f"the kubeconfig is `{self.kubeconfig}`"
                    if self.kubeconfig
                    else "there is no kubeconfig, so no kubectl"
                )
                self._messages.warn(f"{error.what}; {instead}")

    def _write_temporary(self, text: bytes) -> Path | None:
        try:
            self._temporary = Path(tempfile.mkdtemp(prefix="fairlead-"))
            path = self._temporary / laptop_state.KUBECONFIG
            replace_whole(path, text)
        except OSError:
            return None
        return path

    def write_ready(self, addresses: Mapping[str, object]) -> None:
        """Write the state file for `arena`, and the ready file if a flag names one."""
        try:
            if self.kubeconfig is not None:
                own = self._own.path if self._is_own_written else self.kubeconfig
                state = {"pid": os.getpid(), **addresses, "kubeconfig": str(own)}
                self._state.write(render_json(state), with_folder=True)
                self._write_sign(render_json(state))
        except FairleadError as error:
            self._messages.warn(
                f"commands will not find this laptop: {error.what}; give them --kubeconfig "
                f"{self.kubeconfig}"
            )
        if self._ready is not None:
            try:
                self._ready.write(render_json(addresses), with_folder=True)
            except OutsideError as error:  # the program that asked for it waits for it
                raise UserError(error.what, error.hint) from error

    def _write_sign(self, state: bytes) -> None:
        """Write the file that commands without a directory look for.

        It is optional for a named directory.
        """
        if self._sign is not None:
            with contextlib.suppress(FairleadError):
                self._sign.write(state, with_folder=True)

    def remove(self) -> None:
        """At the end: remove files that no longer open anything.

        A kubeconfig that the user named is kept, if it has nothing else in it.
        """
        for file in (
            self._state,
            self._sign,
            self._ready,
            None if self._is_own_named else self._own,
        ):
            if file is not None:
                file.remove()
        if self._temporary is not None:
            (self._temporary / laptop_state.KUBECONFIG).unlink(missing_ok=True)
        if self._named is not None:
            end_kubeconfig(self._named, self._messages)
        own_home = (
            self._state.path.parent if self._state.path.parent.name == str(os.getpid()) else None
        )
        for folder in (
            own_home,
            self._sign.path.parent if self._sign is not None else None,
            self._temporary,
        ):
            if folder is not None:
                remove_folder(folder)


def _own_home(home: Path, messages: Messages) -> Path:
    """The state directory, or a folder in it if another laptop uses the directory.

    Two laptops must not overwrite each other's kubeconfig.
    """
    other = laptop_state.laptop_in(home)
    if other is None:
        return home
    own = laptop_state.own_folder(home)
    messages.info(
        f"another laptop (process {other.pid}) keeps its files in `{home}`, this one in "
        f"`{own}`. Commands find the other; for this one:\n"
        f'    eval "$(fairlead env --state-dir {shlex.quote(str(own))})"'
    )
    return own
