"""Writes tools/image/debian.lock.json: the versions that Debian's package index has now.

`make image-lock`. Read the diff before you commit it.
"""

from __future__ import annotations

import sys

from image.apt import newest_packages
from image.debian_lock import ARCHITECTURES, LOCK, lock_text
from progress import StepFailed, say


def main() -> int:
    try:
        packages = [each for name in ARCHITECTURES for each in newest_packages(name)]
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        return 1
    LOCK.write_text(lock_text(packages), encoding="utf-8")
    say(f"wrote {LOCK.name} ({len(packages)} packages)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
