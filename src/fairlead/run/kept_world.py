"""A simulated world that outlives its process.

It is created in, or read from, a file of the state directory, and saved there.

`save` runs before an answer is sent, so no answer is ever undone. Changes that the world makes by
itself are saved with the next answer, or within a second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead import __version__
from fairlead.edge.files.world_file import Key, Row, WorldFile
from fairlead.errors import OutsideError, UserError
from fairlead.run.initial_worlds import InitialWorld, resumed_world, scenario_world, to_the_present
from fairlead_sim.api.credentials import (
    ServerCredentials,
    make_credentials,
    parse_credentials,
    render_credentials,
)
from fairlead_sim.objects.resources import PODS
from fairlead_sim.objects.saved import HeldCard, SavedWorld, check_object
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.world.past import WorldPast
from fairlead_sim.world.world import World

DEFAULT_SCENARIO: Final = "default"
SAVE_SECONDS: Final = 1.0
RESERVED_VERSIONS: Final = 100_000
"""`RESERVED_VERSIONS`: resourceVersions reserved in the file before use, so that none is used
twice, even if lost.
"""
EARLIER_LIVES_MAX: Final = 1000
"""Earlier lives that are remembered, for programs that have been running since then."""
LIFE: Final = 1 << 32
"""Difference between the first numbers of names in two lives, so that names of the last
life that were not saved do not occur again.
"""
_log = logging.getLogger(__name__)


class Header(Struct, frozen=True, kw_only=True):
    """The world without its objects.

    `origin`, `digest` and `scenario` are its `InitialWorld`'s; times are simulated epoch seconds.
    """

    origin: str
    digest: str
    scenario: str
    seed: int
    epoch: float
    now: float
    resource_version: int
    names_counter: int
    standstills: tuple[tuple[float, float], ...] = ()
    submitted: dict[str, int] = {}
    credentials: str = ""
    saved_by: str = ""


class KeptWorld:
    """`world` with the `file` in which it is kept. Close it at the end."""

    def __init__(
        self,
        file: WorldFile,
        world: World,
        header: Header,
        credentials: ServerCredentials,
        *,
        is_restored: bool,
    ) -> None:
        self.world = world
        self.origin = header.origin
        self.credentials = credentials
        self.is_restored = is_restored
        self.file = file
        self._header = header
        self._dropped: set[Key] = set()
        self._changed = self._unsaved(header.resource_version if is_restored else 0)
        self._is_failing = False
        world.cluster.witness(self._note)
        self._write()

    @property
    def is_of_the_present(self) -> bool:
        """Whether its clock follows the machine's; the clock of
        a world from a snapshot does not.
        """
        return bool(self._header.scenario)

    def save(self) -> None:
        """Returns when everything written so far is on disk.

        Raises OutsideError; the next save tries again.
        """
        if self._dropped or self._changed:
            self._write()

    async def run(self) -> None:
        """Save changes that the world makes by itself, until cancelled.

        A failing disk is logged once, and once more when it works again.
        """
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            try:
                self.save()
            except OutsideError as error:
                if not self._is_failing:
                    _log.error("the world is not saved: %s", error.log_line)
                self._is_failing = True
            else:
                if self._is_failing:
                    _log.info("the world is saved again")
                self._is_failing = False

    def close(self) -> None:
        """Save a last time, and close."""
        try:
            self._write()
        except OutsideError as error:
            _log.error("the last moments of the world are not saved: %s", error.log_line)
        finally:
            self.file.close()

    # --- changes ----------------------------------------------------------------------------------

    def _unsaved(self, since: int) -> dict[Key, Any]:
        """Objects with versions later than `since`, in order."""
        cluster = self.world.cluster
        found = [
            (ref, obj)
            for ref in cluster.kinds()
            for obj in cluster.scan(ref)
            if int(obj["metadata"]["resourceVersion"]) > since
        ]
        found.sort(
            key=lambda item: (
                item[1]["metadata"]["creationTimestamp"],
                int(item[1]["metadata"]["resourceVersion"]),
            )
        )
        return {
            (ref.group_resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
            for ref, obj in found
        }

    def _note(self, event: LoggedChange) -> None:
        obj = event.object
        metadata = obj["metadata"]
        key = (
            self.world.cluster.kind_of(obj).group_resource,
            metadata.get("namespace", ""),
            metadata["name"],
        )
        if event.type == DELETED:
            self._changed.pop(key, None)
            self._dropped.add(key)
        else:
            self._changed[key] = obj
        if event.resource_version > self._header.resource_version:
            self._reserve(event.resource_version)

    def _reserve(self, version: int) -> None:
        """Reserve more versions.

        If the disk fails, no answer is sent until a save succeeds.
        """
        self._header = replace(self._header, resource_version=version + RESERVED_VERSIONS)
        try:
            self.file.write((), (), msgspec.json.encode(self._header))
        except OutsideError as error:
            _log.error("the world is not saved: %s", error.log_line)

    def _write(self) -> None:
        world = self.world
        header = replace(
            self._header,
            now=world.clock.now(),
            names_counter=world.cluster.names.counter,
            submitted={stream.key: stream.number for stream in world.arrivals},
            resource_version=max(
                self._header.resource_version,
                world.cluster.resource_version + RESERVED_VERSIONS // 2,
            ),
            saved_by=__version__,
        )
        self.file.write(
            self._dropped,
            (self._row(key, obj) for key, obj in self._changed.items()),
            msgspec.json.encode(header),
        )
        self._header = header
        self._dropped.clear()
        self._changed.clear()

    def _row(self, key: Key, obj: Any) -> Row:
        held = (
            self.world.devices.held_by(obj["metadata"]["uid"]) if obj["kind"] == PODS.kind else ()
        )
        return Row(*key, msgspec.json.encode(obj), msgspec.json.encode(held) if held else b"")


def open_world(
    directory: Path,
    asked: InitialWorld | None,
    seed: int | None,
    past: WorldPast | None = None,
) -> KeptWorld:
    """The world of a state directory, or a new one that starts there.

    `asked` and `seed` are the flags of the user; None = the existing world, else the default
    scenario and seed 0. `past` keeps the end of a new world's history. Raises UserError if the file
    cannot be used or contains another world.
    """
    file = WorldFile(directory)
    try:
        if file.is_new:
            beginning = asked or scenario_world(DEFAULT_SCENARIO)
            kept = _begun(file, beginning, beginning.world(seed or 0, past), seed or 0)
        else:
            kept = _restored(file, directory, asked, seed)
        if kept.is_of_the_present:
            to_the_present(kept.world)
        return kept
    except BaseException:
        file.close()
        raise


def _begun(file: WorldFile, beginning: InitialWorld, world: World, seed: int) -> KeptWorld:
    credentials = make_credentials()
    header = Header(
        origin=beginning.origin,
        digest=beginning.digest,
        scenario=beginning.scenario,
        seed=seed,
        epoch=world.epoch,
        now=world.clock.now(),
        resource_version=0,
        names_counter=0,
        credentials=render_credentials(credentials),
    )
    try:
        return KeptWorld(file, world, header, credentials, is_restored=False)
    except OutsideError as error:
        raise UserError(error.what, error.hint) from error


def _restored(
    file: WorldFile, directory: Path, asked: InitialWorld | None, seed: int | None
) -> KeptWorld:
    try:
        header = msgspec.json.decode(file.header(), type=Header)
        _check_request(directory, header, asked, seed)
        saved, header = _saved(file, header)
        credentials = parse_credentials(header.credentials, time.time())
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError) as error:
        raise file.damaged(error) from error
    if credentials is None:
        credentials = make_credentials()
        header = replace(header, credentials=render_credentials(credentials))
    try:
        world = resumed_world(header.scenario, header.origin, header.seed, saved)
        return KeptWorld(file, world, header, credentials, is_restored=True)
    except ApiStatus as error:  # a kind that the API server does not serve
        raise file.damaged(error.message) from error
    except OutsideError as error:
        raise UserError(error.what, error.hint) from error


def _saved(file: WorldFile, header: Header) -> tuple[SavedWorld, Header]:
    """The saved world, and the header of the life that begins now.

    The time between is one more standstill.
    """
    objects: list[Any] = []
    held: dict[str, list[HeldCard]] = {}
    for body, cards in file.rows():
        obj = msgspec.json.decode(body)
        check_object(obj)
        int(obj["metadata"]["resourceVersion"])
        objects.append(obj)
        if cards:
            held[obj["metadata"]["uid"]] = msgspec.json.decode(cards, type=list[HeldCard])
    now = max(time.time(), header.now) if header.scenario else header.now
    epoch, names = header.epoch + now - header.now, header.names_counter + LIFE
    saved = SavedWorld(
        objects,
        header.now,
        now,
        epoch,
        header.resource_version,
        names,
        held,
        header.submitted,
        header.standstills,
    )
    standstills = (*header.standstills, (header.now, now))[-EARLIER_LIVES_MAX:]
    return saved, replace(header, epoch=epoch, standstills=standstills)


def _check_request(
    directory: Path, header: Header, asked: InitialWorld | None, seed: int | None
) -> None:
    kept = f"state directory `{directory}` keeps a world of {header.origin}"
    if asked is not None and asked.digest != header.digest:
        is_changed = asked.origin == header.origin
        problem = (
            f"{kept} as it was before it changed"
            if is_changed
            else f"{kept}, not of {asked.origin}"
        )
        raise UserError(
            problem,
            (
                f"leave out {asked.flag} to go on with it, or give "
                "another directory with --state-dir"
            ),
        )
    if seed is not None and seed != header.seed:
        problem = f"{kept} with seed {header.seed}, not {seed}"
        raise UserError(
            problem,
            "leave out --seed to go on with it, or give another directory with --state-dir",
        )
