"""Events: equal ones are counted, and they are listed in the order in which they happened, whatever
their names or versions.
"""

from __future__ import annotations

from typing import Any

from tests.sim.small_world import EPOCH, NAMESPACE, get_pod, live, pod, small_world
from tests.sim.world.saved_worlds import woken

from fairlead_sim.objects.resources import EVENTS
from fairlead_sim.world.world import World

Object = dict[str, Any]
WORDS = ("zebra", "apple", "mango", "kiwi", "berry", "yuzu", "fig", "date")


def reported(world: World, about: str = "p") -> list[Object]:
    """The events in the API's order: by name."""
    return [
        event
        for event in world.cluster.list(EVENTS, NAMESPACE)
        if event["involvedObject"]["name"] == about
    ]


def report(world: World, *reasons: str) -> None:
    for reason in reasons:
        world.recorder.normal(get_pod(world), reason, f"{reason} happened", "test")


def stamps(events: list[Object]) -> list[int]:
    return [int(event["metadata"]["name"].rpartition(".")[2], 16) for event in events]


def test_a_pods_events_are_listed_in_the_order_in_which_they_happened() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 60)
    assert [event["reason"] for event in reported(world)] == [
        "Scheduled",
        "Pulling",
        "Pulled",
        "Created",
        "Started",
    ]


def test_a_name_is_the_objects_and_the_instant_in_nanoseconds() -> None:
    """client-go: `fmt.Sprintf("%v.%x", ref.Name, t.UnixNano())`."""
    world = small_world()
    world.cluster.create(pod())
    live(world, 60)
    for event in reported(world):
        name, _, stamp = event["metadata"]["name"].rpartition(".")
        assert name == "p"
        assert EPOCH <= int(stamp, 16) / 1e9 <= EPOCH + 60


def test_a_clock_that_stands_still_changes_no_order() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 60)
    report(world, *WORDS)
    events = [event for event in reported(world) if event["reason"] in WORDS]
    assert len({event["lastTimestamp"] for event in events}) == 1
    assert [event["reason"] for event in events] == list(WORDS)
    versions = [int(event["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)


def test_equal_events_are_counted_in_one_also_after_a_stop() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 60)
    report(world, "Again", "Again", "Other")
    (again,) = [event for event in reported(world) if event["reason"] == "Again"]
    assert again["count"] == 2
    world = woken(world, hours_off=0.0)
    report(world, "Again", "Last")
    later = {event["reason"]: event for event in reported(world)}
    assert later["Again"]["count"] == 3
    assert later["Again"]["metadata"]["uid"] == again["metadata"]["uid"]
    assert [event["reason"] for event in reported(world)][-3:] == ["Again", "Other", "Last"]
    assert len(set(stamps(reported(world)))) == len(reported(world))


def test_a_drawn_name_of_an_older_world_sends_no_clock_ahead() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 60)
    report(world, "Old")
    (old,) = [event for event in reported(world) if event["reason"] == "Old"]
    world.cluster.delete(EVENTS, NAMESPACE, old["metadata"]["name"])
    renamed = {**old, "metadata": {"name": "p.fedcba9876543210", "namespace": NAMESPACE}}
    world.cluster.create(renamed, is_trusted=True)
    world = woken(world, hours_off=0.0)
    report(world, "New")
    (new,) = [event for event in reported(world) if event["reason"] == "New"]
    assert EPOCH < stamps([new])[0] / 1e9 < EPOCH + 61


def test_an_event_that_was_deleted_is_reported_anew() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 60)
    report(world, "Again")
    (first,) = [event for event in reported(world) if event["reason"] == "Again"]
    world.cluster.delete(EVENTS, NAMESPACE, first["metadata"]["name"])
    report(world, "Again")
    (second,) = [event for event in reported(world) if event["reason"] == "Again"]
    assert second["count"] == 1
    assert stamps([first]) < stamps([second])
    live(world, 3700)
    assert reported(world) == [], "forgotten an hour after it was last seen"
