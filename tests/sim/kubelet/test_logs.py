"""Lines of containers: computed, the same in every request, and growing only at their end."""

from __future__ import annotations

from tests.sim.small_world import NAMESPACE, live, pod, small_world

from fairlead_sim.world.world import World


def lines(
    world: World, *, previous: bool = False, name: str = "p"
) -> list[tuple[float, str]] | None:
    found = world.logs.lines(NAMESPACE, name, "main", previous)
    return None if found is None else list(found)


def test_lines_of_a_running_container_grow_at_their_end() -> None:
    world = small_world()
    world.cluster.create(pod(image="train:10m"))
    live(world, 120)
    early = lines(world)
    assert early
    assert early[0][1] == "starting train:10m"
    assert all(at <= world.clock.now() for at, _ in early)
    live(world, 100)
    late = lines(world)
    assert late
    assert late[: len(early)] == early
    assert len(late) == len(early) + 10


def test_the_last_words_of_a_container_that_ended() -> None:
    world = small_world()
    world.cluster.create(pod(image="fail:1m"))
    live(world, 200)
    reported = lines(world)
    assert reported
    assert reported[-1][1] == "error: the program gave up"


def test_the_run_before_a_crash() -> None:
    world = small_world()
    world.cluster.create(pod(image="crash:30s", restartPolicy="Always"))
    live(world, 60)
    assert lines(world, name="p", previous=True) is None or lines(world, previous=True)
    live(world, 100)
    before = lines(world, previous=True)
    assert before
    assert before[-1][1] == "Segmentation fault (core dumped)"


def test_a_pod_that_never_ran_wrote_nothing() -> None:
    world = small_world()
    world.cluster.create(pod(image="missing:1"))
    live(world, 60)
    assert lines(world) == []
    assert lines(world, previous=True) is None
    assert world.logs.lines(NAMESPACE, "nobody", "main", False) is None
