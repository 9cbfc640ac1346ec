"""This machine for verbs (`cli.frame.context.Machine`). Each method imports what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.cli.frame.context import LoadBackend
    from fairlead.edge.files.laptop_state import RunningLaptop
    from fairlead.edge.files.own_files import OwnFile
    from fairlead.edge.registry.push import BundlePush
    from fairlead.edge.store.administration import SqlAdministration
    from fairlead.edge.store.questions import LedgerQuestions
    from fairlead.kinds.parts.elastic_training import SshKeys
    from fairlead.model.devices.gpu_chip import LoadCard
    from fairlead.wire.files.offline_bundle import BundleReport
    from fairlead.wire.files.snapshot_file import SavedSnapshot

_MOST_CARDS: Final = 64


class OwnMachine:
    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def read(self, name: str) -> bytes:
        return Path(name).expanduser().read_bytes()

    def new_file(
        self, name: str, what: str, example: str, is_own: Callable[[bytes], bool]
    ) -> OwnFile:
        from fairlead.edge.files.own_files import FileKind, OwnFile

        return OwnFile(Path(name).expanduser(), FileKind(what, example, is_own))

    def absolute(self, name: str) -> str:
        from fairlead.edge.files.own_files import absolute

        return str(absolute(name))

    def snapshot(self, name: str) -> SavedSnapshot:
        from fairlead.edge.files.snapshot_files import load_snapshot

        return load_snapshot(name)

    def check_bundle(self, name: str) -> BundleReport:
        from fairlead.edge.files.offline_bundle import check_bundle

        return check_bundle(name)

    def extract_bundle(self, name: str, folder: str) -> BundleReport:
        from fairlead.edge.files.offline_bundle import extract_bundle

        return extract_bundle(name, folder)

    def registry(self, address: str, user: str, password_file: str, ca_file: str) -> BundlePush:
        from fairlead.edge.registry.address import registry_address
        from fairlead.edge.registry.push import BundlePush

        return BundlePush(registry_address(address, user, password_file, ca_file))

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

        return (
            laptop_in(Path(self.laptop_home(state_dir))) if state_dir else running_laptop(self._env)
        )

    def commit(self) -> str:
        return checkout_commit(Path(__file__).parents[3])

    def ssh_keys(self) -> SshKeys:
        from fairlead.edge.files.ssh_keys import new_ssh_keys

        return new_ssh_keys()

    def load_backend(self, name: str, sim_gpus: str, *, uses_matrices: bool) -> LoadBackend:
        return load_backend(name, sim_gpus, self._env, uses_matrices=uses_matrices)

    def store(self, url: str, password_file: str, authority: str) -> SqlAdministration:
        from fairlead.edge.store.address import store_address
        from fairlead.edge.store.administration import SqlAdministration

        return SqlAdministration(store_address(url, password_file, authority))

    def usage_store(self, url: str, password_file: str, authority: str) -> LedgerQuestions:
        from fairlead.edge.store.address import store_address
        from fairlead.edge.store.questions import LedgerQuestions

        return LedgerQuestions(store_address(url, password_file, authority))

    def page(self, url: str) -> str:
        from fairlead.edge.prometheus.one_page import read_page

        return read_page(url)


def checkout_commit(root: Path) -> str:
    """The commit of a source checkout, read from its files; empty if `root` is no checkout."""
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


def load_backend(
    name: str, sim_gpus: str, env: Mapping[str, str], *, uses_matrices: bool
) -> LoadBackend:
    """The backend `cuda` or `sim`; `auto` is the CUDA library that is installed.

    Raises OutsideError if there is none, UserError for unknown models.
    """
    import signal

    signal.signal(signal.SIGTERM, _end)
    if name == "sim":
        from fairlead.edge.files.simulated_backend import SimulatedBackend
        from fairlead.edge.files.simulated_loads import load_folder

        return SimulatedBackend(
            load_folder(env), _simulated(sim_gpus, env), env.get("NODE_NAME", "")
        )
    from fairlead.edge.cuda.array_library import find_array_library
    from fairlead.edge.cuda.backend import CudaBackend

    return CudaBackend(find_array_library(), uses_matrices=uses_matrices)


def _end(number: int, _: object) -> NoReturn:
    """The first process of a container is not ended by a signal without a handler."""
    raise SystemExit(128 + number)


def _simulated(text: str, env: Mapping[str, str]) -> list[LoadCard]:
    """Simulated cards of the models in the text.

    Their uuids are those given to the container (NVIDIA_VISIBLE_DEVICES); without any, they stand
    for the exporter's cards with the same index.
    """
    import re

    from fairlead.model.devices.gpu_chip import CHIPS, LoadCard

    given = [
        each for each in env.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if each.startswith("GPU-")
    ]
    spelled = {model.replace(" ", "-"): model for model in CHIPS}
    models: list[str] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,2})x(\S+)", part.strip(), re.ASCII)
        if match is None or match[2] not in spelled:
            raise UserError(
                f"`{part.strip()}` names no simulated GPUs",
                f"write for example `1xTesla-T4`; known are {', '.join(spelled)}",
            )
        models += [spelled[match[2]]] * int(match[1])
    if given:
        models = (models * len(given))[: len(given)]
    if not 0 < len(models) <= _MOST_CARDS:
        raise UserError(f"`{text}` are {len(models)} GPUs", f"write from 1 to {_MOST_CARDS}")
    return [
        LoadCard(index, given[index] if given else "", model, CHIPS[model])
        for index, model in enumerate(models)
    ]
