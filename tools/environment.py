"""Makes what a run of this checkout needs: `.venv` from the lock files, and the console's pages.

`python3 tools/environment.py run|dev [--console]`; what is already right costs a hash and nothing
else. Packages are installed over an existing environment, never beside a deleted one: another
terminal may be running from it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from console_pages import build_console, is_console_built
from locks import only_one
from progress import StepFailed, run_step, say, spoken_seconds
from toolchains import REPOSITORY, find_uv

VENV = REPOSITORY / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "fairlead-environment.json"
LOG = REPOSITORY / "build" / "logs" / "environment.log"
LOCKS = {name: REPOSITORY / "requirements" / f"{name}.txt" for name in ("run", "dev")}
SCRIPTS = {
    "fairlead": "run_fairlead",
    "arena": "run_arena",
    "kubectl-inspect-cgpu": "run_kubectl_inspect",
    "kubectl-inspect-gpushare": "run_kubectl_inspect_gpushare",
    "dcgm-exporter": "run_dcgm_exporter",
    **{f"dcgmproftester{cuda}": "run_dcgmproftester" for cuda in (11, 12, 13)},
}


def make_environment(kind: str) -> None:
    """Bring `.venv` up to the lock file of `kind` ("run" or
    "dev"; dev holds all that run holds).
    """
    if is_environment_ready(kind):
        return
    with only_one(REPOSITORY / "build" / "environment.lock", "the Python environment"):
        if is_environment_ready(kind):
            return
        say(f"making the Python environment ({kind}) in {VENV.name}")
        seconds = _install(kind)
        _write_own_files()
        STAMP.write_text(json.dumps({**_stamp(), kind: _key(kind)}), encoding="utf-8")
        say(f"made the Python environment in {spoken_seconds(seconds)}")


def is_environment_ready(kind: str) -> bool:
    """Whether `.venv` was made by this Python, at this place, from this lock file.

    Or, for run, from dev's.
    """
    stamp = _stamp()
    if not PYTHON.exists():
        return False
    return stamp.get(kind) == _key(kind) or (kind == "run" and stamp.get("dev") == _key("dev"))


def _stamp() -> dict[str, str]:
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _key(kind: str) -> str:
    """A hash of all that the environment follows from.

    Lock files, interpreter, place, and how this module makes it.
    """
    key = hashlib.sha256(f"{kind} {sys.version} {VENV}".encode())
    for path in (LOCKS["run"], LOCKS[kind], Path(__file__)):
        key.update(path.read_bytes())
    return key.hexdigest()


def _install(kind: str) -> float:
    """Install packages by uv, or by pip without uv.

    Every package is checked against its hash.
    """
    try:
        uv = str(find_uv().program)
    except StepFailed as failed:
        say(f"no uv here ({failed.what.splitlines()[0]}); pip will do")
        return _make_venv([sys.executable, "-m", "venv"]) + _run(
            [str(PYTHON), "-m", "pip", "install", "--quiet"], kind
        )
    return _make_venv([uv, "venv", "--quiet", "--python", sys.executable]) + _run(
        [uv, "pip", "install", "--quiet", "--python", str(PYTHON)], kind
    )


def _make_venv(argv: list[str]) -> float:
    if _runs_this_python():
        return 0.0
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        return run_step("making .venv", [*argv, str(VENV)], LOG)
    except StepFailed as failed:
        raise StepFailed(
            failed.what, "Debian keeps venv apart: `apt-get install python3-venv`"
        ) from None


def _runs_this_python() -> bool:
    """Whether `.venv` exists, starts, and is of the version that runs this tool."""
    try:
        ask = [str(PYTHON), "-c", "import sys; print(sys.version)"]
        return (
            subprocess.run(ask, capture_output=True, text=True, timeout=30, check=False).stdout
            == sys.version + "\n"
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(installer: list[str], kind: str) -> float:
    environment = dict(os.environ, VIRTUAL_ENV=str(VENV))
    return run_step(
        "installing Python packages",
        [*installer, "--require-hashes", "-r", str(LOCKS[kind])],
        LOG,
        env=environment,
    )


def _write_own_files() -> None:
    """The editable install: a .pth line and console scripts, without a build backend."""
    site_packages = (
        VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    )
    (site_packages / "fairlead-checkout.pth").write_text(
        f"{REPOSITORY / 'src'}\n", encoding="utf-8"
    )
    for script, function in SCRIPTS.items():
        path = VENV / "bin" / script
        text = (
            f"#!{PYTHON}\nimport sys\n\nfrom fairlead.run.programs import "
            f"{function}\n\nsys.exit({function}())\n"
        )
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


def _make_both(kind: str) -> None:
    """The console in a thread beside the packages: both mostly wait for disks and registries."""
    failures: list[StepFailed] = []

    def build() -> None:
        try:
            build_console()
        except StepFailed as failed:
            failures.append(failed)

    thread = None if is_console_built() else threading.Thread(target=build)
    if thread:
        thread.start()
    try:
        make_environment(kind)
    finally:
        if thread:
            thread.join()
    if failures:
        raise failures[0]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description="Make the Python environment and the console of this checkout."
    )
    parser.add_argument(
        "kind",
        choices=sorted(LOCKS),
        help="run: what `fairlead` needs; dev: that and the test tools",
    )
    parser.add_argument("--console", action="store_true", help="also build the console's pages")
    chosen = parser.parse_args(argv)
    try:
        _make_both(chosen.kind) if chosen.console else make_environment(chosen.kind)
    except StepFailed as failed:
        say(f"error: {failed.what}")
        if failed.hint:
            say(f"hint: {failed.hint}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
