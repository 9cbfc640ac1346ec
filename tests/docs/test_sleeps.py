"""A test waits for a condition (`tests/waiting.py`) or on a clock of its own; where real time is its subject, it is listed here."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ON_A_CLOCK_THAT_JUMPS = {
    "apps/node_agent/test_agent.py",
    "apps/node_agent/test_killed.py",
    "apps/node_agent/test_lost_grants.py",
    "apps/node_agent/test_storm.py",
    "apps/quota_fakes.py",
    "apps/share_fakes.py",
    "apps/share_storm.py",
    "apps/test_extender_lives.py",
    "apps/test_long_turns.py",
    "apps/test_owner_names.py",
    "apps/test_quota_controller.py",
    "edge/test_hanging_pages.py",
    "run/test_share_same_places.py",
}
"""A sleep takes no time there."""
ALLOWED = {
    "apps/share_fuzz.py": 1,  # questions at a rate
    "apps/test_cluster_exporter.py": 1,  # a page that takes long
    "apps/test_question_protocol.py": 2,  # what comes behind a slow answer; until no more is answered
    "cli/frame/test_interrupts.py": 1,  # moments of a start
    "cli/jobs/test_attach.py": 4,  # servers that fall silent
    "contracts/api_client.py": 1,  # asks again
    "edge/scripted.py": 3,  # replies that come late, or never
    "edge/test_exec_stream.py": 1,  # a server that falls silent
    "edge/test_kept_connections.py": 1,  # the other end has seen it, too
    "edge/test_quota_api.py": 1,  # a short pause in place of a long one
    "edge/test_reflector.py": 1,  # a short pause in place of a long one
    "edge/test_world.py": 1,  # a short pause in place of a long one
    "kube/component.py": 1,  # asks again, and tells the end of a log
    "kube/quota_line.py": 1,  # an end that is kept for a while
    "kube/quota_truth.py": 1,  # a watch that begins anew
    "kube/share_line.py": 1,  # how long an API server is away
    "kube/share_truth.py": 1,  # a watch that begins anew
    "kube/test_faults.py": 1,  # each second of an outage
    "kube/test_kubectl_twins.py": 1,  # `--watch-only` says nothing of its start
    "kube/test_quota_and_sharing.py": 2,  # accidents at any moment, and a moment without any
    "kubelet/agent_cases.py": 3,  # what must not happen within a moment
    "kube/test_quota_attacks.py": 3,  # what must not happen within a moment
    "kube/test_quota_demo.py": 1,  # accidents at any moment
    "kube/test_same_end.py": 1,  # an end that is kept for a while
    "kube/test_share_storms.py": 1,  # accidents at any moment
    "kube/test_sharing_words.py": 1,  # until nothing changes any more
    "run/test_laptop.py": 1,  # Ctrl-C well into a large world, of which nothing tells
    "run/test_quota_process.py": 1,  # asks again
    "waiting.py": 2,  # asks again
}
"""Sleeps of each file. What goes away is taken out; what is new needs a reason that is no wait."""


def sleeps(source: str) -> int:
    """Calls of a `sleep`, but for `sleep(0)`, which only gives others their turn."""
    if "sleep(" not in source:
        return 0
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [call for call in calls if (getattr(call.func, "attr", "") or getattr(call.func, "id", "")) == "sleep"]
    return sum(not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0) for call in named)


def test_the_count_sees_what_it_is_there_for() -> None:
    assert sleeps("time.sleep(0.1)\nawait asyncio.sleep(0)\nsleep(seconds)\ndef sleep(): ...") == 2


def test_no_test_sleeps_where_it_could_wait() -> None:
    found = {str(path.relative_to(TESTS)): sleeps(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    assert {path: count for path, count in found.items() if count > ALLOWED.get(path, 0)}.keys() <= ON_A_CLOCK_THAT_JUMPS
