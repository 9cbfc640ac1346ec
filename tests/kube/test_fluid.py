"""Do data sets live and end alike with Fluid's real controllers and on a simulated cluster?

All stories of a world run at once, each in a namespace of its own; one that stops Fluid runs when
the others are over. A run plays half of the stories. Where the two differ, the real one is right:
`FLUID_ENDS=write` writes the states that the real one reaches into `fluid_ends.json`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kube.fluid import Fluid
from tests.kube.fluid_end import fluid_end
from tests.kube.fluid_places import DataPlace, FluidWorld, simulated_world
from tests.kube.fluid_stories import STORIES
from tests.turns import in_turn
from tests.waiting import wait_until

WORLDS = ("real", "simulated")
ENDS = Path(__file__).with_name("fluid_ends.json")
STORY_SECONDS = 540.0
QUIET_SECONDS = 25.0
"""A state that stays for this time is written: Fluid looks again at what is not ready every 20 s.
"""
IS_WRITING = os.environ.get("FLUID_ENDS") == "write"


class Lives:
    """The stories of one world, started together."""

    def __init__(self, world: FluidWorld, names: set[str]) -> None:
        self._world = world
        self.ends: dict[str, dict[str, Any]] = {}
        self._alone = sorted(name for name in names if STORIES[name].is_alone)
        self._pool = ThreadPoolExecutor(len(STORIES))
        self._running = {
            name: self._pool.submit(self._live, name) for name in sorted(names - set(self._alone))
        }

    def wait_for(self, name: str) -> None:
        """Until the story is over; raises its exception if it failed."""
        if name in self._alone:
            wait(self._running.values())
            for each in self._alone:
                if each not in self._running:
                    wait([self._begin(each)])
        self._running[name].result(timeout=STORY_SECONDS)

    def _begin(self, name: str) -> Future[None]:
        self._running[name] = self._pool.submit(self._live, name)
        return self._running[name]

    def _live(self, name: str) -> None:
        place = self._world.place(name)
        reached: dict[str, Any] = {}

        def reach(state: str) -> None:
            if IS_WRITING and self._world.name == "real":
                reached[state] = _quiet_end(place)
            else:
                _check(place, state, json.loads(ENDS.read_text(encoding="utf-8"))[name][state])

        STORIES[name].steps(place, reach)
        self.ends[name] = reached


def _quiet_end(place: DataPlace) -> dict[str, Any]:
    seen, since = fluid_end(place), time.monotonic()

    def is_quiet() -> bool:
        nonlocal seen, since
        found = fluid_end(place)
        if found != seen:
            seen, since = found, time.monotonic()
        return time.monotonic() - since > QUIET_SECONDS

    wait_until("the state does not change", is_quiet, 240, pause_seconds=1)
    return seen


def _check(place: DataPlace, state: str, wanted: dict[str, Any]) -> None:
    def differences() -> str:
        found = dict(_leaves(fluid_end(place)))
        named = dict(_leaves(wanted))
        lines = [
            f"  {key}: wanted {named.get(key, 'nothing')}, found {found.get(key, 'nothing')}"
            for key in sorted({*named, *found})
            if named.get(key) != found.get(key)
        ]
        title = f"{place.namespace} in the {place.world.name} world: {state}"
        return "\n".join((title, *lines))

    wait_until(differences, lambda: fluid_end(place) == wanted, pause_seconds=1)


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each value in a document, with its place."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}/{key}")
    else:
        yield path, json.dumps(value, ensure_ascii=False, sort_keys=True)


@contextmanager
def _worlds(
    names: Iterable[str], folder: Path, request: pytest.FixtureRequest
) -> Iterator[dict[str, FluidWorld]]:
    with ExitStack() as leaving:
        worlds: dict[str, FluidWorld] = {}
        for name in names:
            own = folder / name
            own.mkdir()
            if name == "real":
                fluid: Fluid = request.getfixturevalue("real_fluid")
                worlds[name] = FluidWorld(name, fluid.cluster.kubeconfig, own, fluid)
            else:
                worlds[name] = leaving.enter_context(simulated_world(own))
        yield worlds


@pytest.fixture(scope="module")
def lives(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[dict[str, Lives]]:
    """The chosen stories of the chosen worlds."""
    chosen: dict[str, set[str]] = {}
    for item in request.session.items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if item.path == request.path and "story" in parameters:
            chosen.setdefault(parameters["world"], set()).add(parameters["story"])
    folder = tmp_path_factory.mktemp("fluid")
    found: dict[str, Lives] = {}
    with _worlds(chosen, folder, request) as worlds:
        for name, world in worlds.items():
            found[name] = Lives(world, chosen[name])
        yield found
        if IS_WRITING and "real" in found:
            old = json.loads(ENDS.read_text(encoding="utf-8")) if ENDS.exists() else {}
            text = json.dumps(old | found["real"].ends, indent=1, sort_keys=True)
            ENDS.write_text(text + "\n", encoding="utf-8")


@pytest.mark.parametrize("story", in_turn(list(STORIES), 2))
@pytest.mark.parametrize("world", WORLDS)
def test_a_story_reaches_its_states(story: str, world: str, lives: dict[str, Lives]) -> None:
    lives[world].wait_for(story)
