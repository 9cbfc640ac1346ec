"""How long a simulated week of the default scenario takes, and how much memory. Aim: 30 s.

    .venv/bin/python bench/simulated_week.py [--scenario default] [--days 7] [--seed 0] [--profile]

The world alone, as `fairlead time advance 7d` lives it, without a server around it. It works on one thread:
CPU seconds are what an idle machine needs, and what is compared with the aim.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import time

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.world import World

EPOCH = 1_767_600_000.0
DAY = 86400.0
AIM_SECONDS_PER_DAY = 30 / 7


def live(world: World, days: int) -> float:
    """Day by day, with what each cost; the CPU seconds of all."""
    began = time.process_time()
    for day in range(1, days + 1):
        timers = world.run_until(world.clock.now() + DAY)
        spent = time.process_time() - began
        rss_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"day {day}: {spent:6.1f} s  {timers:6} timers  {world.cluster.resource_version:8} writes so far  {rss_mib} MiB", flush=True)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="default")
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--profile", action="store_true", help="say where the time went")
    args = parser.parse_args()
    world = sharing_world(load_scenario(args.scenario), args.seed, EPOCH)
    world.warm_up()
    profile = cProfile.Profile()
    if args.profile:
        profile.enable()
    began = time.perf_counter()
    seconds = live(world, args.days)
    wall = time.perf_counter() - began
    profile.disable()
    aim = AIM_SECONDS_PER_DAY * args.days
    verdict = "met" if seconds <= aim else "NOT met"
    print(f"{args.days} days of {args.scenario}: {seconds:.1f} CPU s, {wall:.1f} s wall (aim {aim:.1f} s): {verdict}")
    if args.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
