"""Checks Fairlead on this machine's NVIDIA GPUs: `make gpu-check`, at most eight minutes.

The exporter's values are compared with nvidia-smi and NVML, the load generator must move the fields
that it is made for, the agent must offer the cards that NVML has, and the memory guard must hold
containers to their limits. Prints a table, writes build/gpu-check.json, and ends with status 1
where something differs. Without a driver it prints that and ends with 0.

A machine without a network: put the wheels of requirements/run.txt into `wheels/` (see `--help`).
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from environment import LOCKS, PYTHON, make_environment
from progress import StepFailed, say, spoken_seconds
from toolchains import REPOSITORY

SECONDS = 8 * 60.0
LIBRARY = "libnvidia-ml.so.1"
WHEELS = REPOSITORY / "wheels"
REPORT = REPOSITORY / "build" / "gpu-check.json"
SITE = REPOSITORY / "build" / "gpu-check-packages"
PARTS = ("exporter", "guard")
"""`exporter`: exporter, agent and load generator. `guard`: the memory guard."""
HELP = f"""Without a network, make `wheels/` on another machine of the same Python and processor:

  python3 -m pip download --only-binary=:all: --require-hashes -r \
{LOCKS["run"].relative_to(REPOSITORY)} -d wheels
"""
_STAGE = "FAIRLEAD_GPU_CHECK_STAGE"


def _has_library(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _go_on_with_packages(argv: list[str]) -> int:
    """Run this tool again with the packages of `.venv`, or from `wheels/` for this Python.

    An array library for the loads (cupy, torch) is this Python's, so with wheels it stays in sight.
    """
    environment = {**os.environ, _STAGE: "checks", "PYTHONUNBUFFERED": "1"}
    if not WHEELS.is_dir():
        make_environment("run")
        return subprocess.run(
            [str(PYTHON), __file__, *argv], env=environment, check=False
        ).returncode
    wheels = ["--no-index", f"--find-links={WHEELS}", "--require-hashes", "-r", str(LOCKS["run"])]
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--upgrade",
        f"--target={SITE}",
        *wheels,
    ]
    done = subprocess.run(install, check=False)
    if done.returncode:
        raise StepFailed(f"the packages in {WHEELS.name}/ could not be installed", HELP)
    environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY / "src"), str(SITE)])
    return subprocess.run(
        [sys.executable, __file__, *argv], env=environment, check=False
    ).returncode


def _check(chosen: argparse.Namespace, report: Path) -> int:
    import gpu_checks as checks
    import gpu_guard_checks as guard
    from fairlead.errors import FairleadError

    began = time.monotonic()
    parts = _parts(chosen.parts)
    library = chosen.guard_library
    guarded = guard.GuardAsked(
        chosen.nvml_library,
        chosen.cuda_library,
        library,
        chosen.guard_mib or guard.LIMIT_MIB,
        chosen.guard_only,
    )
    loads = _loads(chosen.loads, tuple(checks.LOADS))
    asked = checks.Asked(
        chosen.nvml_library,
        chosen.load_backend,
        chosen.sim_gpus,
        chosen.load_seconds,
        loads,
        chosen.start_seconds,
        chosen.rest_seconds,
    )
    try:
        cards = checks.nvml_cards(asked.library)
        rows = checks.check_all(asked, began + SECONDS - 30) if "exporter" in parts else []
        rows += guard.guard_rows(guarded, began + SECONDS - 60) if "guard" in parts else []
    except FairleadError as error:
        raise StepFailed(error.what, error.hint) from error
    seconds = time.monotonic() - began
    report.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "cards": [card.name or card.error for card in cards],
        "seconds": round(seconds, 1),
        "load_backend": asked.backend,
    }
    report.write_text(checks.as_json(rows, **about), encoding="utf-8")
    print(checks.table(rows))
    counted = {
        result: sum(row.result == result for row in rows)
        for result in (checks.OK, checks.DIFFERS, checks.SKIPPED)
    }
    words = (
        f"{counted[checks.OK]} ok, {counted[checks.DIFFERS]} differ, {counted[checks.SKIPPED]} "
        "skipped"
    )
    print(f"{words} on {len(cards)} GPUs in {spoken_seconds(seconds)}; {report}")
    return 1 if counted[checks.DIFFERS] else 0


def _parts(text: str) -> tuple[str, ...]:
    """Raises StepFailed for what is no part."""
    parts = tuple(text.split(","))
    unknown = [each for each in parts if each not in PARTS]
    if unknown:
        raise StepFailed(f"`{unknown[0]}` is no part of this check", f"they are {', '.join(PARTS)}")
    return parts


def _loads(text: str, known: tuple[int, ...]) -> tuple[int, ...]:
    """Raises StepFailed for what is no test."""
    if text in ("", "all"):
        return known
    asked = () if text == "none" else tuple(text.split(","))
    unknown = [each for each in asked if not each.isdecimal() or int(each) not in known]
    if unknown:
        raise StepFailed(
            f"`{unknown[0]}` is no test of the load generator",
            f"they are {known[0]} to {known[-1]}",
        )
    return tuple(map(int, asked))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--nvml-library",
        default=LIBRARY,
        metavar="PATH",
        help=f"NVIDIA's library (default {LIBRARY})",
    )
    parser.add_argument(
        "--load-backend",
        default="auto",
        choices=["auto", "cuda", "sim"],
        help="of the load generator (default auto)",
    )
    parser.add_argument(
        "--sim-gpus",
        default="",
        metavar="GPUS",
        help="what `--load-backend sim` plays, such as 2xNVIDIA-H200",
    )
    parser.add_argument(
        "--loads",
        default="",
        metavar="IDS",
        help="tests of the load generator by comma, none, or all (default all)",
    )
    parser.add_argument(
        "--load-seconds",
        type=int,
        default=8,
        metavar="N",
        help="seconds of each load (default 8)",
    )
    parser.add_argument(
        "--start-seconds",
        type=float,
        default=60.0,
        metavar="N",
        help="patience with the exporter's first values (default 60)",
    )
    parser.add_argument(
        "--rest-seconds",
        type=float,
        default=15.0,
        metavar="N",
        help="patience with cards at rest before a load (default 15)",
    )
    parser.add_argument(
        "--parts",
        default=",".join(PARTS),
        metavar="NAMES",
        help=f"what to check, by comma (default {','.join(PARTS)})",
    )
    parser.add_argument(
        "--cuda-library",
        default="libcuda.so.1",
        metavar="PATH",
        help="NVIDIA's CUDA driver, for the guard (default libcuda.so.1)",
    )
    parser.add_argument(
        "--guard-library",
        type=Path,
        metavar="PATH",
        help="the memory guard (default: of this checkout's source, else the package's)",
    )
    parser.add_argument(
        "--guard-mib",
        type=int,
        default=0,
        metavar="N",
        help="limit of the smaller container, at most a fifth of what is free (default 2048)",
    )
    parser.add_argument(
        "--guard-only",
        default="",
        metavar="TEXT",
        help="checks of the guard with this in their name (default all)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        default=REPORT,
        metavar="FILE",
        help="JSON (default build/gpu-check.json)",
    )
    chosen = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, _end)
    if not _has_library(chosen.nvml_library):
        print(
            f"skipped: {chosen.nvml_library} cannot be loaded, so this machine has no NVIDIA driver"
        )
        return 0
    try:
        if os.environ.get(_STAGE) != "checks" and not _has_packages():
            return _go_on_with_packages(argv)
        return _check(chosen, chosen.report)
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        return 1
    except RuntimeError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


def _end(number: int, frame: object) -> None:
    """As Ctrl-C does: programs end, and files are removed."""
    raise KeyboardInterrupt


def _has_packages() -> bool:
    return all(
        importlib.util.find_spec(name) for name in ("fairlead", "pynvml", "msgspec", "aiohttp")
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
