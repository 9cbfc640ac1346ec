"""`fairlead time` against a console over a simulated world: what a user types, the output, and the
errors.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import shlex
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.apps.moved_console import moved
from tests.cli.command import Printed
from tests.run.laptop_config import laptop_config
from tests.sim.small_world import EPOCH, pod

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.parser import global_options, make_parser
from fairlead.cli.servers import simulated_time
from fairlead.edge.files.laptop_clock import LaptopClock
from fairlead.errors import OutsideError, UserError
from fairlead.run.machine import OwnMachine
from fairlead.run.worlds import ChosenWorld
from fairlead_sim.world.driver import Driver


class Doors:
    def __init__(self, url: str) -> None:
        self.url = url

    def laptop_clock(self, state_dir: str) -> LaptopClock:
        return LaptopClock(self.url)

    def reader(self) -> None:
        raise AssertionError("no command of time reads a cluster")

    def run_process(self, name: str, args: argparse.Namespace) -> int:
        raise AssertionError(name)


def time_command(url: str, line: str, sleep: Callable[[float], None] = lambda _: None) -> Printed:
    out, err = io.StringIO(), io.StringIO()
    args = make_parser(simulated_time, "fairlead").parse(shlex.split(line))
    messages = Messages("fairlead", err, now=lambda: 0.0)
    context = Context(
        "fairlead",
        global_options(args),
        messages,
        Doors(url),
        out,
        {},
        lambda: 0.0,
        sleep,
        OwnMachine({}),
    )  # type: ignore[arg-type]
    status = simulated_time.run(args, context)
    return Printed(status, out.getvalue(), err.getvalue())


@asynccontextmanager
async def laptop(
    *, is_running: bool = False
) -> AsyncIterator[tuple[Driver, Callable[[str], object]]]:
    async with moved(is_running=is_running) as one:
        yield one.driver, lambda line: asyncio.to_thread(time_command, one.page.url, line)


async def test_show_pause_speed_and_resume() -> None:
    async with laptop() as (driver, command):
        driver.world.run_until(EPOCH + 3723)
        driver.pace.jump_to(EPOCH + 3723, wall=time.monotonic())
        paused = await command("pause")
        assert paused.out.splitlines()[1].split() == ["pace:", "paused,", "x1"]  # type: ignore[attr-defined]
        assert (await command("")).out == paused.out  # type: ignore[attr-defined]
        assert paused.out.splitlines()[0] == "time:  2026-01-05 09:02:03 UTC"  # type: ignore[attr-defined]
        assert "paused, x60" in (await command("speed 60")).out  # type: ignore[attr-defined]
        assert "running, x60" in (await command("resume")).out  # type: ignore[attr-defined]


async def test_json_has_the_keys_of_the_api() -> None:
    async with laptop() as (driver, command):
        await command("pause")
        shown = json.loads((await command("show -o json")).out)  # type: ignore[attr-defined]
        assert shown == {
            "now": shown["now"],
            "speed": 1.0,
            "isPaused": True,
            "since": None,
            "until": None,
        }
        driver.world.cluster.create(pod("p", "train:1m"))
        stepped = json.loads((await command("step -o json")).out)  # type: ignore[attr-defined]
    assert stepped["happenedCount"] == len(stepped["happened"]) > 0
    assert stepped["clock"]["isPaused"]


async def test_a_step_states_what_happened_and_when() -> None:
    async with laptop() as (driver, command):
        await command("pause")
        driver.world.cluster.create(pod("p", "train:1m"))
        lines = (await command("step")).out.splitlines()  # type: ignore[attr-defined]
    assert "modified  Pod work/p" in lines
    assert lines[-2].startswith("time:  2026-01-05 08:0")


async def test_advance_waits_until_it_has_arrived_and_no_wait_does_not() -> None:
    async with laptop(is_running=True) as (driver, command):
        await command("pause")
        began = driver.now()
        done = await command("advance 2h30m")
        assert driver.now() == began + 9000
        assert "run:" not in done.out  # type: ignore[attr-defined]
        begun = await command("advance 300d --no-wait")
        assert "% of the way to " in begun.out  # type: ignore[attr-defined]
        assert driver.state().until is not None
        await command("pause")
        assert driver.state().until is None


async def test_until_is_a_time() -> None:
    async with laptop(is_running=True) as (driver, command):
        await command("pause")
        await command("until '2026-01-05 12:00'")
        assert driver.now() == EPOCH + 4 * 3600


async def test_ctrl_c_pauses_a_run_where_it_is() -> None:
    async with moved(is_running=True) as one:

        def interrupt(_: float) -> None:
            raise KeyboardInterrupt

        def interrupted() -> None:
            with pytest.raises(KeyboardInterrupt):
                time_command(one.page.url, "advance 300d", interrupt)

        await asyncio.to_thread(interrupted)
        assert one.driver.state().is_paused
        assert EPOCH < one.driver.now() < EPOCH + 300 * 86400


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rewind", "`rewind` is not an action"),
        ("pause 5m", "`pause` takes nothing, not `5m`"),
        ("advance", "`advance` takes a span of time, such as `10m`, not nothing"),
        ("advance 10", "`10` is not a length of time"),
        ("advance 0s", "`0.0` is no time to go ahead"),
        ("advance 999999d", "days ahead; at most 366"),
        ("until yesterday", "`yesterday` is no time"),
        ("until 2026-01-05T07:00:00Z", "is not after the world's time"),
        ("speed quick", "`quick` is not a speed"),
        ("speed nan", "`nan` is not a speed"),
        ("speed 0", "speed `0` is not between 0.01 and 100000"),
    ],
)
async def test_what_cannot_be_is_reported_with_its_value_and_a_hint(
    line: str, message: str
) -> None:
    async with laptop() as (driver, command):
        with pytest.raises(UserError) as refused:
            await command(line)
        assert message in refused.value.what
        assert refused.value.hint
        assert (driver.state().is_paused, driver.state().until) == (False, None)


def test_without_a_laptop_it_prints_where_it_looked(tmp_path: Path) -> None:
    world = chosen({"XDG_STATE_HOME": str(tmp_path)})
    with pytest.raises(UserError) as refused:
        world.laptop_clock("")
    assert (
        str(tmp_path) in refused.value.what
        and "fairlead up" in refused.value.hint
        and "--state-dir" in refused.value.hint
    )


def test_a_console_that_does_not_answer_is_the_outsides_failure() -> None:
    with pytest.raises(OutsideError, match=r"`http://127\.0\.0\.1:9`"):
        time_command("http://127.0.0.1:9", "show")


def chosen(env: dict[str, str], *flags: str) -> ChosenWorld:
    options = global_options(make_parser(simulated_time, "fairlead").parse(list(flags)))
    return ChosenWorld(options, env, Messages("fairlead", io.StringIO()))


def test_the_laptop_is_the_one_that_the_kubeconfig_names(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    path = laptop_config(
        tmp_path,
        "http://127.0.0.1:1",
        {"console": "http://127.0.0.1:2", "gpuExporter": "http://127.0.0.1:3"},
    )
    for world in (chosen({**home, "KUBECONFIG": str(path)}), chosen(home, f"--kubeconfig={path}")):
        with pytest.raises(
            OutsideError,
            match=r"`http://127\.0\.0\.1:2`",
        ):
            world.laptop_clock("").read()
    with pytest.raises(UserError, match="`/absent`"):
        chosen({**home, "KUBECONFIG": str(path)}).laptop_clock("/absent")


def test_another_cluster_than_a_laptops_is_refused_by_flag_and_passed_by_as_the_variable(
    tmp_path: Path,
) -> None:
    home = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    path = laptop_config(tmp_path, "http://127.0.0.1:1", None)
    with pytest.raises(
        UserError,
        match=r"`http://127\.0\.0\.1:1`, context `c` of",
    ):
        chosen(home, f"--kubeconfig={path}").laptop_clock("")
    with pytest.raises(UserError) as caught:
        chosen({**home, "KUBECONFIG": str(path)}).laptop_clock("")
    assert caught.value.what == f"no laptop keeps its files in `{tmp_path}/state/fairlead/laptop`"
