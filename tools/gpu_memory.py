"""Holds memory of each GPU until its input ends: `make gpu-check` compares memory in use meanwhile.

Arguments: MiB of each card. The first line of its output is `HOLDS`, or why it holds nothing.
"""

from __future__ import annotations

import sys

from fairlead.edge.cuda.array_library import find_array_library
from fairlead.errors import OutsideError
from fairlead.model.devices.gpu_load import DRAM

HOLDS = "holds"


def main(mib: int) -> int:
    try:
        library = find_array_library()
    except OutsideError as error:
        print(error.what, flush=True)
        return 2
    half = (mib << 20) // 2  # a copy within a card has memory for both its ends
    held = [library.copies(card.index, DRAM, half) for card in library.cards()]
    for card in library.cards():
        library.wait(card.index)
    print(HOLDS, flush=True)
    sys.stdin.read()
    del held
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
