"""This machine as verbs see it (`cli.frame.context.Machine`). Each method imports what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.edge.files.laptop_state import RunningLaptop
    from fairlead.edge.files.own_files import OwnFile
    from fairlead.kinds.parts.elastic_training import SshKeys
    from fairlead.wire.files.snapshot_file import SavedSnapshot


class OwnMachine:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def read(self, name: str) -> bytes:
        return Path(name).expanduser().read_bytes()

    def new_file(self, name: str, what: str, example: str, is_ours: Callable[[bytes], bool]) -> OwnFile:
        from fairlead.edge.files.own_files import FileKind, OwnFile

        return OwnFile(Path(name), FileKind(what, example, is_ours))

    def snapshot(self, name: str) -> SavedSnapshot:
        from fairlead.edge.files.snapshot_files import load_snapshot

        return load_snapshot(name)

    def config(self) -> Mapping[str, str]:
        from fairlead.edge.files.arena_config import read_arena_config

        return read_arena_config(self._env)

    def config_file(self) -> str:
        from fairlead.edge.files.arena_config import config_file

        return str(config_file(self._env))

    def laptop_home(self, state_dir: str) -> str:
        from fairlead.edge.files.laptop_state import laptop_home

        return str(Path(state_dir).expanduser() if state_dir else laptop_home(self._env))

    def laptop(self, state_dir: str) -> RunningLaptop | None:
        from fairlead.edge.files.laptop_state import laptop_in, running_laptop

        return laptop_in(Path(self.laptop_home(state_dir))) if state_dir else running_laptop(self._env)

    def commit(self) -> str:
        return checkout_commit(Path(__file__).parents[3])

    def ssh_keys(self) -> SshKeys:
        from fairlead.edge.files.ssh_keys import new_ssh_keys

        return new_ssh_keys()


def checkout_commit(root: Path) -> str:
    """The commit a source checkout stands on, read from its files; empty when `root` is no checkout."""
    try:
        head = (root / ".git" / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        reference = head.removeprefix("ref: ")
        loose = root / ".git" / reference
        if loose.exists():
            return loose.read_text().strip()
        packed = (root / ".git" / "packed-refs").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split()[0] for line in packed if line.endswith(f" {reference}")), "")
