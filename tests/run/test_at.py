"""`fairlead at MOMENT` prints what the command printed then, from a real SQLite store.

The oracle is the same command with `--snapshot` of a file that was saved at the moment.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.usage.kept import StateKeeper

from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.run.main import main
from fairlead.wire.files.snapshot_file import SavedSnapshot, render_snapshot
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import WorldReader, take_snapshot

EPOCH = 1_780_000_000.0
"""Long ago: a recorder that has ended forgets nothing."""


class Kept(NamedTuple):
    """`files`: by the moment. `waiting`: a pod that waited at each, as NAMESPACE/NAME."""

    store: str
    files: dict[str, Path]
    waiting: dict[str, str]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("past")
    found = Kept(f"sqlite:///{folder}/store", {}, {})
    asyncio.run(_live(folder, found))
    return found


async def _live(folder: Path, kept: Kept) -> None:
    world = sharing_world(load_scenario("default"), 3, EPOCH)
    world.warm_up()
    reader = WorldReader(world.cluster)
    store = await open_store(store_address(kept.store))
    try:
        keeper = StateKeeper(store.ledger)
        for number in range(6):
            world.run_until(world.clock.now() + 900)
            snapshot = take_snapshot(world, reader)
            at = round(snapshot.taken_at * 1000)
            await keeper.look(snapshot, at)
            pods = [pod for pod in snapshot.pods if not pod.node and not pod.is_finished]
            if number % 3 == 1 and pods:
                moment = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
                file = folder / f"{number}.snapshot"
                file.write_bytes(render_snapshot(SavedSnapshot(snapshot, at / 1000)))
                kept.files[moment] = file
                kept.waiting[moment] = pods[0].key
    finally:
        await store.close()


def _printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main("fairlead", words)
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    "command",
    [
        ("top", "node"),
        ("top", "node", "-d", "-m", "s"),
        ("top", "node", "-o", "json"),
        ("list", "-A"),
        ("list", "-n", "vision", "-o", "wide"),
        ("why",),
    ],
)
def test_it_prints_what_was_printed_then(
    kept: Kept, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(kept.files) >= 2
    texts = set()
    for moment, file in kept.files.items():
        words = (*command, kept.waiting[moment]) if command == ("why",) else command
        status, then, _ = _printed(capsys, *words, "--snapshot", str(file))
        assert status == 0
        status, past, err = _printed(capsys, "at", moment, *words, "--store", kept.store)
        assert (status, past) == (0, then), err
        texts.add(then)
    assert len(texts) > 1 or "-m" in command, "the moments must differ"


def test_flags_may_stand_before_the_moment(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    moment = next(iter(kept.files))
    one = _printed(capsys, "at", moment, "list", "-A", "--store", kept.store)
    assert _printed(capsys, "at", "--store", kept.store, moment, "list", "-A") == one


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("-1h", "top", "job"), "`top job` cannot be shown of the past"),
        (("-1h", "delete", "x"), "`delete` cannot be shown of the past"),
        (("top", "node"), "`at` needs a moment before `top`"),
        ((), "the following arguments are required"),
        (("-1h",), "the following arguments are required"),
        (("-1h", "top", "node", "--refresh"), "the past does not change"),
        (("-1h", "list", "--watch"), "the past does not change"),
        (("2001-01-01", "list"), "2001-01-01T00:00:00+00:00 is before the first record"),
        (("2099-01-01", "list"), "is in the future"),
        (("soon", "list"), "`soon` names no moment"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    kept: Kept, words: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = _printed(capsys, "at", *words, "--store", kept.store)
    assert (status, out) == (1, "")
    assert error in err


def test_help_needs_no_store(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _printed(capsys, "at", "-2h", "--help")
    assert status == 0
    assert "usage: fairlead at MOMENT COMMAND" in out
    status, out, _ = _printed(capsys, "at", "-2h", "top", "node", "--help")
    assert "--store" in out
