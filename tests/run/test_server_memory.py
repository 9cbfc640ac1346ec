"""A server gives the memory of large texts back, although small objects were made among them."""

from __future__ import annotations

import sys

import pytest
from tests.programs import run_program

PROGRAM = """
import sys
from pathlib import Path
from fairlead.run.servers.memory import give_back_large_blocks

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 // 1024

if sys.argv[1] == "given back":
    give_back_large_blocks()
bytearray(8 << 20)  # what glibc raises its threshold by, once it is freed
before, kept, texts = resident(), [], []
for _ in range(100):
    texts.append(b"x" * (1 << 20))
    kept.append(bytes(2000))
assert resident() > before + 90
texts.clear()
print(resident() - before)
"""


@pytest.mark.parametrize(("what", "is_so"), [("given back", True), ("as it is", False)])
def test_large_texts_are_given_back(what: str, is_so: bool) -> None:
    """Without the call they stay: if that changes one day, the call is needless."""
    ended = run_program([sys.executable, "-c", PROGRAM, what], check=True)
    assert (int(ended.stdout) < 10) is is_so, ended.stdout


APPS = {
    "extender": "fairlead.apps.scheduler_extender",
    "quota": "fairlead.apps.quota_controller",
    "people": "fairlead.apps.people.people_controller",
    "webhook": "fairlead.apps.admission_webhook",
}


@pytest.mark.parametrize("server", APPS)
def test_a_server_does_not_load_the_others(server: str) -> None:
    """Each has a pod of its own, and pays for what it loads."""
    program = f"import sys, fairlead.run.servers.{server}; print(*sys.modules)"
    ended = run_program([sys.executable, "-c", program], check=True)
    loaded = set(ended.stdout.split())
    assert {app for app in APPS.values() if app in loaded} == {APPS[server]}
    assert "fairlead.apps.console_server" not in loaded
