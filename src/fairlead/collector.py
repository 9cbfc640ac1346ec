"""Python's garbage collector, which rests while many rows are read.

It would look at every new row again and again: hundreds of times the work of the parser. Rows refer
to no row in a circle, so it would find nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_COLLECTED_AFTER_MOST = 100_000
"""New objects between collections.

With Python's own 700 a large cluster's console stopped for 0.3 s every other second.
"""
_reading_now = 0
_is_frozen_next = False


@contextlib.contextmanager
def quiet_collector(*, is_first: bool = False) -> Iterator[None]:
    """No garbage collection while rows are read. Nested use is fine; all uses are in one thread.

    After a first list (`is_first`) everything read is frozen: later collections pass over it. The
    more was read, the fewer collections there are: a process that keeps a large cluster makes
    hundreds of thousands of new objects at each change of it, and throws away as many.
    """
    global _reading_now, _is_frozen_next  # the collector is the process's, so are these
    was_enabled = gc.isenabled() or _reading_now > 0
    _reading_now += 1
    _is_frozen_next = _is_frozen_next or is_first
    gc.disable()
    try:
        yield
    finally:
        _reading_now -= 1
        if _reading_now == 0 and was_enabled:
            if _is_frozen_next:
                _is_frozen_next = False
                _freeze()
            gc.enable()


def _freeze() -> None:
    gc.collect()
    gc.freeze()
    seldom, *older = gc.get_threshold()
    often = min(_COLLECTED_AFTER_MOST, gc.get_freeze_count() // 10)
    gc.set_threshold(max(seldom, often), *older)
