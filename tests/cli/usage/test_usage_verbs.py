"""Verbs about usage: over a console and over a store they print the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs
from tests.apps.running_console import console
from tests.cli.usage.usage_shell import Shell
from tests.console.clusters import EPOCH, living_cluster
from tests.console.people_parts import MemoryPeople, member
from tests.console.sign_in_parts import FakeRecords, FakeSignInApi, Parts
from tests.console.worlds import still_world
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.small_ledger import DAY, LIVES, Life, fill, price

from fairlead.edge.console.console_api import ConsoleApi
from fairlead.errors import OutsideError, UserError
from fairlead.model.people.rows import UserRole

START = round(EPOCH * 1000) // DAY * DAY - 3 * DAY
HOURS = (round(EPOCH * 1000) - START) // 3_600_000
EVIL = Life("team-x", "\x1b]0;mine\x07", "root.\x1b[2J", "", "p", "gpu-1", 44, 50, gpus=1)


@asynccontextmanager
async def shell(token: str = "Bearer token-of-anna") -> AsyncIterator[Shell]:
    ledger = MemoryLedger()
    folds = [(START + day * DAY, START + (day + 1) * DAY) for day in range(3)]
    await fill(ledger, (*LIVES, EVIL), start=START, hours=HOURS, folds=folds)
    await ledger.add_price(price(32_000_000, START, list_node_hour=40_000_000))
    users = (member("anna", role=UserRole.ADMIN),)
    desk = Parts(FakeSignInApi(users), records=FakeRecords(), ledger=ledger).desk()
    world = structs.replace(still_world(living_cluster()), people=MemoryPeople(users, (), ()))
    async with console(world, desk=desk) as page:
        yield Shell(ledger, page.url, token)


LINES = (
    "usage",
    "usage --by leaf --period 4d",
    "usage --by job --period 4d",
    "usage --by model --month 2026-01",
    "usage --period 4d -o csv",
    "cost bert",
    "cost bert --type mpijob --uid uid-bert",
    "idle --period 2d",
    "idle --period 2d -o wide",
    "idle -o csv",
    "prices list",
    "prices list -o wide",
    "report 2026-01",
    "report 2026-01 -o csv",
    "report 2026-01 -o json --as-of 2026-01-01T00:00:00Z",
    "usage -o json",
    "usage -o yaml",
    "idle -o json",
    "cost bert -o json",
    "prices list -o json",
)


async def test_console_and_store_print_alike_and_no_escape_sequence() -> None:
    async with shell() as it:
        for line in LINES:
            printed = await it.both(line)
            assert printed.status == 0 and printed.out, line
            assert "\x1b" not in printed.out, line


async def test_usage_prints_hours_money_and_a_total() -> None:
    async with shell() as it:
        printed = await it.over_store("usage --by user --period 4d")
    first, _, heads, *rows = printed.out.splitlines()
    assert first == "From 2026-01-01T08:00:00Z to 2026-01-05T08:00:00Z, days in UTC, costs in EUR"
    assert heads.split()[:2] == ["USER", "GPU-HOURS"]
    alice = next(row.split() for row in rows if row.startswith("alice"))
    # 36 h × 4 GPUs; 36 × (0.9 × 4/8 + 0.05 × 16/64 + 0.05 × 4096/524288) × 32
    assert (alice[1], alice[7], alice[8], alice[9]) == ("144", "533.25", "666.56", "20%")
    assert rows[-1].split()[0] == "TOTAL"
    assert "80 node-hours without a price: node.kubernetes.io/instance-type=c-16" in printed.err


async def test_a_price_is_entered_and_ended() -> None:
    async with shell() as it:
        added = await it.over_console(
            "prices add --match gpu-model=A100 --price 40 --valid-from 2026-01-04 --note late"
        )
        assert added.out == (
            "price 2: gpu-model=A100 costs 40.000000 EUR per hour from 2026-01-04T00:00:00Z\n"
        )
        assert it.ledger.added[1].entered_by == "anna"
        ended = await it.over_store("prices end --match gpu-model=A100 --valid-from 2026-01-05")
        assert ended.out == "prices of gpu-model=A100 end at 2026-01-05T00:00:00Z\n"
        assert [each.entered_by for each in it.ledger.added[1:]] == ["anna", "root"]
        assert [each.ended for each in it.ledger.added] == [False, False, True]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("prices add --price -5 --valid-from 2026-01-01 --currency EUR", "is negative"),
        ("prices add --price 5 --valid-from 2026-01-01 --currency USD", "are in EUR"),
        ("prices add --price 5 --valid-from 2026-01-01T05:00:00Z", "beginning of a billing day"),
        ("prices add --price five --valid-from 2026-01-01", "`five` is no amount of money"),
        ("prices add --price 5 --valid-from soon", "`soon` is no time"),
        ("prices add --match team=a --price 5 --valid-from 2026-01-01", "cannot match the label"),
        ("prices end --match gpu-model=H100 --valid-from 2026-01-01", "there is no price of"),
        ("usage --by planet", "`by` is `planet`"),
        ("usage --period soon", "the period `soon` is malformed"),
        ("report 2027-01", "the ledger has no folded day of 2027-01"),
        ("report january", "`january` is no month"),
    ],
)
async def test_both_refuse_bad_input_with_the_same_words(line: str, words: str) -> None:
    async with shell() as it:
        with pytest.raises(UserError) as one:
            await it.over_console(line)
        with pytest.raises(UserError) as other:
            await it.over_store(line)
        assert words in one.value.what
        assert one.value.what == other.value.what
        assert len(it.ledger.added) == 1


async def test_an_unknown_job_is_named() -> None:
    async with shell() as it:
        with pytest.raises(UserError) as caught:
            await it.over_console("cost other")
        assert caught.value.what == ("the ledger has no job `other` in the namespace `team-a`")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("usage --by planet --store x --console y", "--store and --console are given"),
        ("usage -o xml", "unknown output format,only support:[wide|json|yaml]"),
        ("report 2026-01 -o pdf", "the report has no format `pdf`"),
        ("prices add --price 1 --valid-from 2026-01-01 --match a", "--match `a` is malformed"),
        (
            "prices add --price 1 --valid-from 2026-01-01 --match a=b --match a=c",
            "--match names `a` twice",
        ),
        (
            "prices add --price 1 --valid-from 2026-01-01 --gpu-share most",
            "--gpu-share `most` is no number",
        ),
    ],
)
def test_bad_flags_are_refused_before_anything_is_asked(line: str, what: str) -> None:
    it = Shell(MemoryLedger(), "", "")
    with pytest.raises(UserError) as caught:
        it.run(line, is_direct=False)
    assert caught.value.what == what


async def test_without_a_token_the_console_asks_to_sign_in() -> None:
    async with shell(token="") as it:
        with pytest.raises(UserError) as caught:
            await it.over_console("usage")
        assert "the kubeconfig has no token that this console accepts" in caught.value.hint


def ask(url: str, token: str = "", ca_file: str = "") -> bytes:
    return ConsoleApi(url, lambda: token, ca_file=ca_file, env={}).get("/usage", {})


def test_a_token_is_not_sent_without_tls_to_another_machine() -> None:
    with pytest.raises(UserError) as caught:
        ask("http://console.example", "Bearer secret")
    assert "is asked without TLS" in caught.value.what
    assert "secret" not in caught.value.what + caught.value.hint


@pytest.mark.parametrize(
    "url", ["console.example", "ftp://a", "https://", "https://a?b=c", "https://u:p@a", "http://[a"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UserError) as caught:
        ask(url)
    assert "is no address of a console" in caught.value.what
    assert ":p@" not in caught.value.what


def test_a_missing_authority_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        ask("https://127.0.0.1:9", ca_file=str(tmp_path / "none.pem"))
    assert "--console-ca-file" in caught.value.what


def test_a_console_that_does_not_answer_is_named() -> None:
    with pytest.raises(OutsideError) as caught:
        ask("http://127.0.0.1:9")
    assert caught.value.what.startswith("the console `http://127.0.0.1:9`")
