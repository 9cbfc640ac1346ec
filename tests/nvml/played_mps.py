"""A played `nvidia-cuda-mps-control`, with what NVIDIA documents of it.

`play_mps` writes the program into a folder. `-d` starts its daemon, which serves a socket in
`CUDA_MPS_PIPE_DIRECTORY` and writes its process id there; without a flag the program passes each
line of its input to that daemon and prints the answers. Default limits are those of later servers;
a limit of a server is that of its later clients; a client's own limits lower it, and an entry for a
card that the client does not see drops all of the client's own. The word `connect` plays a client:
which NVIDIA's program has not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.programs import run_program
from tests.waiting import HANG_SECONDS, wait_until

NAME = "nvidia-cuda-mps-control"
PROGRAM = '''#!{python}
import os, pathlib, socket, sys
pipes = pathlib.Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
DEVICE = pipes.name
os.chdir(pipes)  # a socket's path has 107 bytes at most
defaults, servers = {{}}, {{}}

def mib(text):
    return int(text[:-1]) * {{"M": 1, "G": 1024}}[text[-1]]

def shown(limit):
    floor = os.environ.get("PLAYED_MPS_FLOOR") and limit >= 1024
    return f"{{limit // 1024}}G" if floor else f"{{limit}}M"

def device(word):
    assert word in ("0", DEVICE), f"Invalid device {{word}}"

def connect(uid, own):
    """The limit of a new client: its server's, and lower by its own entries `card=size`."""
    made = dict(pid=4000 + len(servers), limit=defaults.get("limit"))
    server = servers.setdefault(int(uid), made)
    entries = dict(each.split("=") for each in own.split(",") if each != "-")
    limits = [server["limit"]] if server["limit"] else []
    if all(card in ("0", DEVICE) for card in entries):
        limits += [mib(size) for size in entries.values()]
    return str(min(limits)) if limits else "unlimited"

def answer(line):
    word, *rest = line.split()
    if word == "get_server_list":
        return "\\n".join(str(each["pid"]) for each in servers.values())
    if word == "set_default_device_pinned_mem_limit":
        device(rest[0])
        if not os.environ.get("PLAYED_MPS_FORGETS"):
            defaults["limit"] = mib(rest[1])
        return ""
    if word == "get_default_device_pinned_mem_limit":
        device(rest[0])
        return shown(defaults["limit"]) if "limit" in defaults else ""
    if word == "set_device_pinned_mem_limit":
        device(rest[1])
        by_pid = {{each["pid"]: each for each in servers.values()}}
        by_pid[int(rest[0])]["limit"] = mib(rest[2])
        return ""
    if word == "connect":
        return connect(*rest)
    raise ValueError(f"Unknown command {{word}}")

def serve():
    listening = socket.socket(socket.AF_UNIX)
    listening.bind("control")
    listening.listen()
    (pipes / "{name}.pid").write_text(f"{{os.getpid()}}\\n")
    while True:
        client, _ = listening.accept()
        with client, client.makefile("rw") as lines:
            for line in lines:
                if line.strip() == "quit":
                    return
                try:
                    lines.write("ok " + answer(line).replace("\\n", " ") + "\\n")
                except Exception as error:
                    lines.write(f"failed {{error}}\\n")
                lines.flush()

def ask():
    asking = socket.socket(socket.AF_UNIX)
    try:
        asking.connect("control")
    except OSError:
        sys.exit("Cannot find MPS control daemon process")
    with asking, asking.makefile("rw") as lines:
        for command in sys.stdin:
            lines.write(command)
            lines.flush()
            how, _, text = lines.readline().partition(" ")
            print(text.strip().replace(" ", "\\n") if how == "ok" else text.strip())
            if how == "failed":
                sys.exit(1)

serve() if sys.argv[1:] == ["-d"] else ask()
'''


def play_mps(folder: Path) -> Path:
    """The path of the program."""
    program = folder / NAME
    program.write_text(PROGRAM.format(python=sys.executable, name=NAME), encoding="utf-8")
    program.chmod(0o755)
    return program


def ask_mps(program: Path, pipes: Path, command: str) -> str:
    done = run_program(
        [str(program)],
        stdin=f"{command}\n",
        env={**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(pipes)},
        check=True,
    )
    return done.stdout.strip()


@contextmanager
def daemon(program: Path, pipes: Path, **knobs: str) -> Iterator[None]:
    """The daemon of the card whose UUID is the name of this pipe directory."""
    pipes.mkdir(parents=True, exist_ok=True)
    written = pipes / f"{NAME}.pid"
    written.unlink(missing_ok=True)
    (pipes / "control").unlink(missing_ok=True)
    process = subprocess.Popen(
        [str(program), "-d"],
        env={**os.environ, **knobs, "CUDA_MPS_PIPE_DIRECTORY": str(pipes)},
    )
    try:
        wait_until(
            "the played MPS daemon does not write its process id",
            lambda: (
                process.poll() is not None
                or (written.exists() and written.read_text(encoding="ascii").strip())
            ),
            30,
            0.02,
        )
        assert process.poll() is None, "the played MPS daemon has ended"
        yield
    finally:
        process.terminate()
        process.wait(HANG_SECONDS)
