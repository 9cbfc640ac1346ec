"""The agent's files are those that the guard in C reads and writes.

Specification: docs/spec/gpu-sharing.md#limits-file-and-region.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.native.driver import MIB, UUID, Machine
from tests.native.stepped import Built, SteppedAccount
from tests.waiting import HANG_SECONDS

from fairlead.edge.node.agent_files import NodeAgentFiles, NodeFolders
from fairlead.edge.node.guard_files import NodeGuardFiles
from fairlead.model.devices.kubelet import (
    CardLimit,
    ContainerLimits,
    Region,
    RegionCard,
    RegionSlot,
)
from fairlead.model.refusal import Refusal
from fairlead.rules.devices.guard.counted import counted
from fairlead.wire.kubelet import region_file
from fairlead.wire.kubelet.limits_file import parse_limits
from fairlead.wire.kubelet.region_file import parse_region, render_region

TOKEN = "0123456789abcdef"
LIMITS = (
    b"version 1\n"
    b"gpu GPU-a limit_bytes 4509925376 core_percent 30 context_bytes 1048576\n"
    b"gpu GPU-b limit_bytes 0 core_percent 0 context_bytes 0\n"
    b"region /run/fairlead/gpu/region\n"
)
WORDS = (
    b"\0",
    b"\x01",
    b"\x7f",
    b"\xc3\xa9",
    b" ",
    b"0",
    b"9",
    b"1048576",
    b"a" * 300,
    b"/",
    b"\n",
)


def many(count: int) -> bytes:
    """Limits of this number of GPUs."""
    line = b"gpu GPU-%d limit_bytes 0 core_percent 0 context_bytes 0\n"
    return b"version 1\n" + b"".join(line % each for each in range(count)) + b"region /r\n"


@cache
def library() -> SteppedAccount:
    return SteppedAccount(Built(macros=("GUARD_STEPS",)))


@pytest.fixture(scope="module")
def compiled() -> SteppedAccount:
    return library()


def test_the_layout_is_that_of_the_header(compiled: SteppedAccount) -> None:
    first_slot = 64 + 32 * region_file.CARDS
    slot = 8 * (3 + region_file.CARDS)
    assert compiled.layout() == [
        region_file.MAGIC,
        region_file.VERSION,
        region_file.CARDS,
        region_file.SLOTS,
        region_file.BYTES,
        16,
        64,
        first_slot,
        32,
        slot,
        first_slot + slot * region_file.SLOTS,
        first_slot + slot * region_file.SLOTS + 8 * region_file.CARDS,
    ]


def test_every_word_is_read_and_written_where_c_has_it(compiled: SteppedAccount) -> None:
    seed = (1 << 63) + 5
    filled = compiled.filled(seed)
    found = parse_region(filled)
    assert found == Region(
        seed,
        tuple(RegionCard(*range(seed + 4 * card, seed + 4 * card + 4)) for card in range(32)),
        tuple(
            RegionSlot(number, first, first + 1, first + 2, tuple(range(first + 3, first + 35)))
            for number in range(1024)
            for first in (seed + 35 * number,)
        ),
    )
    assert render_region(found) == filled


def test_the_guard_works_in_a_region_of_the_agent(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.region.write_bytes(render_region(Region(7)))
    with machine.start("dlsym", "fill", "cuMemAlloc_v2", 4 * MIB, 40) as process:
        out, errors = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, errors) == (0, ""), out
    found = parse_region(machine.region.read_bytes())
    assert isinstance(found, Region)
    count = machine.count()
    assert found.generation == 7
    assert found.cards[0] == RegionCard(count.used, count.used_peak, count.denied, count.unknown)
    assert (count.used_peak, count.denied) == (64 * MIB, 1)
    assert set(found.cards[1:]) == {RegionCard()}


def test_the_exporter_reads_what_the_guard_counts_in_files_of_the_agent(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    files = NodeAgentFiles(NodeFolders(*(tmp_path / each for each in ("p", "c", "state", "run"))))
    region = files.region_path(TOKEN)
    limits = ContainerLimits((CardLimit("GPU-other", 9), CardLimit(UUID, 64)), region)
    files.write_container(TOKEN, limits, None, Region(7))
    reader = NodeGuardFiles(tmp_path / "state", tmp_path / "run")
    words = ("dlsym", "fill", "cuMemAlloc_v2", 4 * MIB, 40)
    with machine.start(*words, FAIRLEAD_GUARD_LIMITS=files.limits_path(TOKEN)) as process:
        out, errors = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, errors) == (0, ""), out
    read = reader.read_guard(TOKEN)
    assert isinstance(read, tuple)
    found = counted(*read)
    assert not isinstance(found, Refusal)
    assert found["GPU-other"] == RegionCard()
    assert (found[UUID].used, found[UUID].peak, found[UUID].denied) == (0, machine.count().peak, 1)


@pytest.mark.parametrize("size", [0, 8, 4096, region_file.BYTES - 1])
def test_what_the_guard_refuses_is_refused(compiled: SteppedAccount, size: int) -> None:
    fresh = render_region(Region(1))
    changed = [bytes((byte ^ 1,)) for byte in fresh[:8]]
    strange = [
        fresh[:size],
        *(fresh[:at] + each + fresh[at + 1 :] for at, each in enumerate(changed)),
    ]
    assert compiled.is_region(fresh)
    assert not isinstance(parse_region(fresh), Refusal)
    for data in strange:
        assert not compiled.is_region(data)
        assert isinstance(parse_region(data), Refusal)


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_limits_that_are_read_are_those_that_the_guard_reads(data: st.DataObject) -> None:
    """The guard accepts bytes that are no whole MiB, which the agent never writes."""
    text = LIMITS
    for _ in range(data.draw(st.integers(0, 3))):
        at, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 90))
        middle = data.draw(st.sampled_from([*WORDS, text[at : at + length] * 2]))
        text = text[:at] + middle + text[at + length :]
    agree(text)


@pytest.mark.parametrize(
    "text",
    [
        LIMITS,
        LIMITS.replace(b"GPU-a", b"GPU-" + b"a" * 59),
        LIMITS.replace(b"GPU-a", b"GPU-" + b"a" * 60),
        LIMITS.replace(b"GPU-a", b"GPU-\x01"),
        LIMITS.replace(b"GPU-a", b"GPU-\xc2\xa0"),
        LIMITS.replace(b"/run", b"/" + b"a" * 234),
        LIMITS.replace(b"/run", b"/" + b"a" * 235),
        LIMITS + b"view\n",
        LIMITS + b"view\nview\n",
        LIMITS + b"view \n",
        LIMITS.replace(b"region", b"view\nregion"),
        LIMITS.replace(b"version", b"view\nversion"),
        LIMITS.replace(b"/run", b"/\x7f"),
        LIMITS.replace(b"/run", b"/a b"),
        many(32),
        many(33),
        many(32) + b"\n",
        many(1) + b"x" * 65535,
        b"version 1\nregion /" + b"r" * 65535 + b"\n",
    ],
)
def test_limits_at_the_edge_of_what_the_guard_reads(text: bytes) -> None:
    agree(text)


def agree(text: bytes) -> None:
    """Both refuse, or both read the same. Only whole MiB in UTF-8 are the agent's."""
    read, seen = parse_limits(text), library().limits(text)
    if isinstance(read, Refusal):
        rows = seen[0] if seen else ()
        is_whole = all(most % MIB == context % MIB == 0 for most, _, context in rows)
        assert seen is None or not is_whole or not is_text(text), read
        return
    rows = [
        (card.memory_mib << 20, card.core_percent, card.context_mib << 20) for card in read.cards
    ]
    assert seen == (rows, read.is_view_only)


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeError:
        return False
    return True
