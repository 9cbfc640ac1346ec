"""Puts the memory guard of every architecture into the package, where a wheel takes it from.

The libraries land in `src/fairlead/guard_dist/<machine>/`. A wheel has both: it is one file for
every platform, and a node uses the one of its own machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from build_native import FIRST_VERSION, GUARD_LIBRARY, Built, build_guard
from debian import C_COMPILER, C_HEADERS, CROSS_PACKAGES, try_install, why_missing
from progress import StepFailed

COMPILERS = (C_COMPILER, C_HEADERS, *CROSS_PACKAGES)
_PLACE = Path("src", "fairlead", "guard_dist")
REPOSITORY = Path(__file__).resolve().parents[1]


def guard_paths(root: Path = REPOSITORY) -> dict[str, Path]:
    """Where the library of each machine (`uname -m`) is in a checkout or an unpacked sdist."""
    return {each: root / _PLACE / each / GUARD_LIBRARY for each in FIRST_VERSION}


def place_guards(machines: Iterable[str] = tuple(FIRST_VERSION)) -> None:
    """Compile the libraries where their sources have changed, and put them in their places.

    Raises StepFailed; then the library that could not be compiled is not in its place either.
    """
    places = guard_paths()
    try_install(COMPILERS)
    for machine in machines:
        place = places[machine]
        try:
            content = build_guard(Built(machine)).read_bytes()
        except StepFailed as failed:
            place.unlink(missing_ok=True)
            _, hint = why_missing(COMPILERS) or ("", "")
            raise StepFailed(f"no memory guard for {machine}: {failed.what}", hint) from None
        if not place.exists() or place.read_bytes() != content:
            place.parent.mkdir(parents=True, exist_ok=True)
            scratch = place.with_name(f".{place.name}.new")
            scratch.write_bytes(content)
            scratch.replace(place)


def main() -> int:
    try:
        place_guards()
    except StepFailed as failed:
        print(f"error: {failed.what}", file=sys.stderr)
        if failed.hint:
            print(f"hint: {failed.hint}", file=sys.stderr)
        return 1
    for path in guard_paths().values():
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
