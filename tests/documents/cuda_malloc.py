"""The program of document 001's images in C, for places where programs really run."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Final

from fairlead_sim.kubelet.cuda_malloc import CONTEXT_MIB, NO_MEMORY, NO_MEMORY_STATUS

TOOLS: Final = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from build_native import NATIVE, Built, kept, run_compiler  # noqa: E402

_SOURCE: Final = Path(__file__).with_name("cuda_malloc.c")
_BUILD: Final = Built(
    macros=(
        f"CONTEXT_MIB={CONTEXT_MIB}",
        f"NO_MEMORY={json.dumps(NO_MEMORY)}",
        f"NO_MEMORY_STATUS={NO_MEMORY_STATUS}",
    )
)


@cache
def cuda_malloc() -> Path:
    """The program, linked with libc alone: it loads the driver's libraries itself."""
    parts = (str(_BUILD), *(path.read_text("utf-8") for path in (_SOURCE, NATIVE / "driver.h")))

    def compile_into(folder: Path) -> None:
        run_compiler(_BUILD, folder, ("-ldl",), (str(_SOURCE),), "cuda-malloc", is_shared=False)

    return kept("cuda-malloc", "cuda-malloc", parts, compile_into)
