"""Starts, stops, kills, freezes and restarts one program of the test cluster, always by its own
pid.

The kernel ends the program when the test process dies for any reason (`setpriv --pdeathsig`). So a
killed run leaves no etcd on a port that the next run might use. To the kernel the thread that
starts a program is its parent: one thread, which ends with the process, starts them all.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.programs import freeze

STOP_SECONDS = 15.0
_STARTER = ThreadPoolExecutor(1, "starter-of-programs")


class ComponentError(Exception):
    """A program of the test cluster did not start, or ended by itself. The text contains the end of
    its log.
    """


class Component:
    """One program with its command line and log. `argv` stays the same over restarts, and so does
    its port.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._argv = [str(word) for word in argv]
        self._environment = dict(os.environ if environment is None else environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The pid of the running program; ComponentError when it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise ComponentError(f"{self.name} does not run")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program; its output is appended to the log."""
        if self.is_running:
            raise ComponentError(f"{self.name} runs already")
        keeper = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = _STARTER.submit(
                subprocess.Popen,
                [*keeper, *self._argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
            ).result()

    def wait_until(self, is_ready: Callable[[], bool], seconds: float) -> None:
        """Wait for `is_ready`. Raises ComponentError with the end of the log when the program ends
        first or the time is up.
        """
        limit = time.monotonic() + seconds
        while not is_ready():
            if not self.is_running:
                raise ComponentError(
                    f"{self.name} ended with status {self.exit_status}\n{self.log_tail()}"
                )
            if time.monotonic() > limit:
                raise ComponentError(
                    f"{self.name} was not ready after {seconds:.0f} s\n{self.log_tail()}"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """Send SIGTERM, then SIGKILL after fifteen seconds. Does nothing when the program does not
        run.
        """
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL, as a power cut would end the program."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Send SIGSTOP: connections stay open and nothing answers."""
        freeze(self.pid)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    @property
    def exit_status(self) -> int | None:
        """None while the program runs; negative for a signal."""
        return None if self._process is None else self._process.poll()

    def log_tail(self, lines: int = 25) -> str:
        """The last lines of the log, for the message of a failure."""
        text = (
            self.log.read_bytes()[-20_000:].decode("utf-8", "replace") if self.log.exists() else ""
        )
        return f"end of {self.log}:\n" + "\n".join(
            "    " + line[:400] for line in text.splitlines()[-lines:]
        )
