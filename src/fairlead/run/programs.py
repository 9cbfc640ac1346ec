"""The entry points of the installed programs: how each starts and ends.

`main` does everything between.

Nothing that takes time may be imported at the top. Until `main` is imported, Ctrl-C must end a
program without output, as the system does; and a command that takes a tenth of a second must not
spend it on cleaning up (`python -m bench cli_start`).
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # the core of `signal`, without the enums that it loads: see `_run`
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

_UNTIL_CYCLES_ARE_SOUGHT = 100_000
"""New objects before the garbage collector runs.

Python's 700 cause a dozen useless runs while modules load.
"""


def run_fairlead() -> NoReturn:
    """It may become a server, so it keeps Python's own start and end."""
    sys.exit(_run("fairlead"))


def run_arena() -> NoReturn:
    _run_shortly("arena")


def run_kubectl_inspect() -> NoReturn:
    """`kubectl inspect cgpu`: kubectl runs `kubectl-inspect-cgpu` from PATH with other words."""
    _run_shortly("kubectl inspect cgpu")


def run_kubectl_inspect_gpushare() -> NoReturn:
    _run_shortly("kubectl inspect gpushare")


def run_dcgmproftester() -> NoReturn:
    """`dcgmproftester11`, `12` and `13`, as manifests call NVIDIA's tool: `fairlead gpu-load`."""
    sys.exit(_run(f"dcgmproftester{sys.argv[0][-2:]}"))


def run_dcgm_exporter() -> NoReturn:
    """`dcgm-exporter`, as its image and a node's systemd unit call it: `fairlead gpu-exporter`."""
    sys.exit(_run("dcgm-exporter"))


def _run_shortly(program: str) -> NoReturn:
    gc.set_threshold(_UNTIL_CYCLES_ARE_SOUGHT)
    status = _run(program)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 120  # as Python itself ends when its last flush fails
    # taking hundreds of modules apart takes a tenth of the life of `arena version`
    os._exit(status)


def _run(program: str) -> int:
    # otherwise the parent process wants Ctrl-C ignored
    is_handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from fairlead.errors import INTERRUPTED
    from fairlead.run.main import main

    def interrupt(_: int, frame: FrameType | None) -> None:
        """Ends the program at once while modules are loaded or msgspec learns a class.

        msgspec crashes when an exception comes in between.
        """
        while frame is not None:
            if (
                frame.f_code.co_filename.startswith("<frozen importlib")
                or "/msgspec/" in frame.f_code.co_filename
            ):
                os._exit(INTERRUPTED)
            frame = frame.f_back
        raise KeyboardInterrupt

    sys.unraisablehook = _pass_on
    try:
        if is_handled:
            signal.signal(signal.SIGINT, interrupt)
        return main(program, sys.argv[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if is_handled:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _pass_on(lost: sys.UnraisableHookArgs) -> None:
    """Ctrl-C where no exception can be raised (in a finalizer):
    send it again, without a traceback.
    """
    if isinstance(lost.exc_value, KeyboardInterrupt):
        import _thread

        _thread.interrupt_main()
    else:
        sys.__unraisablehook__(lost)
