"""An oracle for the most that a pod holds of each card, from docs/spec/gpu-sharing.md#need-of-a-pod
and the order in which the kubelet starts containers.

It walks through the pod's life and looks at every instant. It shares no code with the rules under
test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairlead.model.pod import GrantsByContainer, Pod

Held = dict[str, tuple[int, int]]
"""Units and core percent by the UUID of the card; the key is `#<index>` where a grant names no
UUID.
"""


def instants(pod: Pod) -> Iterator[list[str]]:
    """The names of containers that run at the same time: each init container in turn, sidecars to
    the end, then the app containers.
    """
    sidecars: list[str] = []
    for part in pod.init_containers:
        yield [*sidecars, part.name]
        if part.restartable:
            sidecars.append(part.name)
    yield [*sidecars, *(part.name for part in pod.containers)]


def held_at_most(pod: Pod, grants: GrantsByContainer | None = None) -> Held:
    """The maximum of units and the maximum of core percent over all instants; the two maxima may
    occur at different instants.
    """
    given = pod.grants if grants is None else grants
    most: Held = {}
    for running in instants(pod):
        now: Held = {}
        for name in running:
            for grant in given.get(name, ()):
                key = grant.uuid or f"#{grant.index}"
                units, core = now.get(key, (0, 0))
                now[key] = (units + grant.units, core + grant.core_percent)
        for key, (units, core) in now.items():
            before = most.get(key, (0, 0))
            most[key] = (max(before[0], units), max(before[1], core))
    return most


def asked_at_most(pod: Pod, name: str) -> int:
    """The maximum over all instants of a resource, summed over the limits of the containers that
    run.
    """
    limits: Mapping[str, int] = {
        part.name: part.limits.get(name, 0) for part in (*pod.containers, *pod.init_containers)
    }
    return max(sum(limits[each] for each in running) for running in instants(pod))


def fits_alone(free: Sequence[tuple[int, int]], need: tuple[int, int], cards: int) -> bool:
    """Whether `cards` cards each have the needed units and core percent free."""
    return sum(units >= need[0] and core >= need[1] for units, core in free) >= cards
