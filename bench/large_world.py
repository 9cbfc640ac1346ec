"""How long the `large` world takes to stand, and how much memory it holds. Aim: 15 s, RSS 1.5 GiB.

    .venv/bin/python bench/large_world.py

CPU seconds stand beside wall seconds: on a busy machine only they compare.
"""

from __future__ import annotations

import resource
import time
from collections import Counter

from fairlead.run.beginnings import uncollected
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.conditions import phase_of
from fairlead_sim.objects.resources import PODS, PYTORCH_JOBS
from fairlead_sim.scenario.file import load_scenario

EPOCH = 1_767_600_000.0


def main() -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    with uncollected():
        world = sharing_world(load_scenario("large"), 0, EPOCH)
        print(f"services stand: {time.process_time() - cpu:.1f} s cpu, {time.perf_counter() - wall:.1f} s wall")
        world.warm_up()
    print(f"jobs run too:   {time.process_time() - cpu:.1f} s cpu, {time.perf_counter() - wall:.1f} s wall")
    phases = Counter(phase_of(pod) for pod in world.cluster.scan(PODS))
    print(f"pods: {dict(phases)}; jobs: {len(world.cluster.list(PYTORCH_JOBS))}; writes: {world.cluster.resource_version}")
    print(f"RSS: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
