"""Checks that a pod's life is legal: every write of a pod is compared with the one before, by which
states may follow which, and which never come back.

The rules are Kubernetes's: phases only move forward, a container's restart is counted when it
starts again, a condition's transition time changes with its status, and no time is in the future.
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.objects.conditions import find_condition
from fairlead_sim.objects.watch_log import ADDED, DELETED, LoggedChange

Object = dict[str, Any]

NEXT_PHASES = {
    "Pending": {"Pending", "Running", "Succeeded", "Failed"},
    "Running": {"Running", "Succeeded", "Failed"},
    "Succeeded": {"Succeeded"},
    "Failed": {"Failed"},
}
FINISHED = ("Succeeded", "Failed")


class Lives:
    """All pods' lives so far. `see` is a listener; it raises AssertionError with the pod's name at
    the first illegal write.
    """

    def __init__(self, now: Any) -> None:
        self._now = now
        self._last: dict[str, Object] = {}
        self._ended: set[str] = set()
        self.phases: set[str] = set()

    def see(self, event: LoggedChange) -> None:
        pod = event.object
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        assert uid not in self._ended, f"{name}: written after its end"
        before = self._last.get(uid)
        assert (before is None) is (event.type == ADDED), (
            f"{name}: {event.type} of a uid that is {'new' if before is None else 'known'}"
        )
        if event.type == DELETED:
            self._ended.add(uid)
            return
        check_alone(pod, self._now())
        if before is not None:
            check_after(before, pod)
        self._last[uid] = pod
        self.phases.add(phase(pod))


def phase(pod: Object) -> str:
    return str(pod["status"]["phase"])


def check_alone(pod: Object, now: float) -> None:
    """Check one state of a pod by itself."""
    name, status, spec = pod["metadata"]["name"], pod["status"], pod["spec"]
    is_placed = bool(spec.get("nodeName"))
    for each in statuses(pod):
        assert len(each["state"]) == 1, f"{name}/{each['name']}: {each['state']}"
        assert (
            not each["ready"]
            or "running" in each["state"]
            or each["state"].get("terminated", {}).get("exitCode") == 0
        )
    ready, containers_ready = (
        condition(pod, kind) == "True" for kind in ("Ready", "ContainersReady")
    )
    assert not ready or (containers_ready and phase(pod) == "Running"), (
        f"{name} is Ready in phase {phase(pod)}"
    )
    assert not containers_ready or all(
        each["ready"] for each in status.get("containerStatuses", ())
    )
    if condition(pod, "PodScheduled") is not None:
        assert (condition(pod, "PodScheduled") == "True") is is_placed, (
            f"{name}: PodScheduled and nodeName contradict each other"
        )
    if not is_placed:
        assert phase(pod) in ("Pending", "Failed") and not statuses(pod), f"{name} lives on no node"
    if phase(pod) == "Succeeded":
        assert all(
            each["state"]["terminated"]["exitCode"] == 0 for each in status["containerStatuses"]
        ), f"{name} did not succeed"
    if phase(pod) in FINISHED:
        assert not any("running" in each["state"] for each in statuses(pod)), (
            f"{name} is finished and runs"
        )
    if any(
        "running" in each["state"] or each["restartCount"]
        for each in status.get("containerStatuses", ())
    ):
        assert condition(pod, "Initialized") == "True", f"{name} runs before it is initialized"
        assert phase(pod) != "Pending" or phase(pod) in FINISHED, f"{name} runs and is Pending"
    for stamp in stamps(pod):
        assert parse_time(stamp) <= now + 1, f"{name}: {stamp} lies in the future"


def check_after(before: Object, pod: Object) -> None:
    """Check a write against the state before it."""
    name = pod["metadata"]["name"]
    assert phase(pod) in NEXT_PHASES[phase(before)], f"{name}: {phase(before)} -> {phase(pod)}"
    for key in ("uid", "name", "namespace", "creationTimestamp", "ownerReferences"):
        assert pod["metadata"].get(key) == before["metadata"].get(key), (
            f"{name}: metadata.{key} changed"
        )
    if "deletionTimestamp" in before["metadata"]:
        assert "deletionTimestamp" in pod["metadata"], f"{name}: its deletion was taken back"
        assert pod["metadata"]["deletionTimestamp"] <= before["metadata"]["deletionTimestamp"], (
            f"{name}: its deletion was put off"
        )
    assert before["spec"].get("nodeName") in (None, pod["spec"].get("nodeName")), (
        f"{name} changed its node"
    )
    assert before["status"].get("startTime") in (None, pod["status"].get("startTime")), (
        f"{name} changed its startTime"
    )
    assert int(pod["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    _check_conditions(before, pod)
    known = {each["name"]: each for each in statuses(before)}
    for each in statuses(pod):
        if each["name"] in known:
            _check_container(
                f"{name}/{each['name']}",
                known[each["name"]],
                each,
                is_finished=phase(before) in FINISHED,
            )


def _check_conditions(before: Object, pod: Object) -> None:
    name = pod["metadata"]["name"]
    for old in before["status"].get("conditions", ()):
        new = find_condition(pod["status"].get("conditions", ()), old["type"])
        assert new is not None, f"{name}: condition {old['type']} is gone"
        if old["type"] == "fairlead.io/QuotaAdmitted" and new["reason"] != old["reason"]:
            # the time is that of the current reason
            assert new["lastTransitionTime"] >= old["lastTransitionTime"]
        elif new["status"] == old["status"]:
            assert new["lastTransitionTime"] == old["lastTransitionTime"], (
                f"{name}: {old['type']} moved its time without its status"
            )
        else:
            assert new["lastTransitionTime"] >= old["lastTransitionTime"]
    assert (
        condition(before, "PodScheduled") != "True" or condition(pod, "PodScheduled") == "True"
    ), f"{name} was unscheduled"


def _check_container(name: str, before: Object, after: Object, *, is_finished: bool) -> None:
    (was,), (is_now,) = before["state"], after["state"]
    more = after["restartCount"] - before["restartCount"]
    assert more in (0, 1), f"{name}: restarts {before['restartCount']} -> {after['restartCount']}"
    if is_finished:
        assert after["state"] == before["state"], f"{name}: changed after its pod was finished"
    if was == "waiting" and before["restartCount"] == 0 and not before["lastState"]:
        assert more == 0, f"{name}: a first start is no restart"
    if more:
        assert is_now == "running", f"{name}: a restart is counted when it starts"
        assert after["lastState"], f"{name}: restarted, and there is no state before"
    elif (was, is_now) == ("running", "running"):
        assert before["state"] == after["state"], f"{name}: started again without a restart"
    else:
        # waiting -> terminated: a container that ended within the same instant, or that never
        # started
        assert (was, is_now) != ("terminated", "running") or before["state"] == after["state"], (
            f"{name}: back to life without a restart"
        )
        assert (was, is_now) != ("running", "waiting") or _has_crashed(before, after), (
            f"{name}: stopped running without an end"
        )


def _has_crashed(before: Object, after: Object) -> bool:
    """Whether a container that ran waits for its back-off, with the end of that run as its last
    state.
    """
    ended = after["lastState"].get("terminated", {})
    reason, began = after["state"]["waiting"].get("reason"), before["state"]["running"]["startedAt"]
    return bool(reason == "CrashLoopBackOff" and ended.get("startedAt") == began)


def statuses(pod: Object) -> list[Object]:
    return [
        *pod["status"].get("initContainerStatuses", ()),
        *pod["status"].get("containerStatuses", ()),
    ]


def condition(pod: Object, kind: str) -> str | None:
    found = find_condition(pod["status"].get("conditions", ()), kind)
    return None if found is None else str(found["status"])


def stamps(pod: Object) -> list[str]:
    """Every instant of its past that a pod's status contains."""
    reported = [pod["metadata"]["creationTimestamp"], pod["status"].get("startTime")]
    reported += [each["lastTransitionTime"] for each in pod["status"].get("conditions", ())]
    for each in statuses(pod):
        for state in (*each["state"].values(), *each["lastState"].values()):
            reported += [state.get("startedAt"), state.get("finishedAt")]
            assert "finishedAt" not in state or state["startedAt"] <= state["finishedAt"]
    return [stamp for stamp in reported if stamp]
