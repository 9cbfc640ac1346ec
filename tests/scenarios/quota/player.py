"""Plays a scenario through an API server, real or simulated, and reads the outcome there: pods,
Jobs that quota suspended, the tree's status.

Running and waiting pods are counted here from the objects alone, by code that is not shared with
the quota rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from tests.scenarios.quota.files import Expectation, Scenario, Step
from tests.scenarios.quota.objects import (
    GANG,
    PLURALS,
    budget_object,
    namespaces,
    priority_classes,
    tree_object,
    workload_objects,
)

Object = dict[str, Any]
GATE = "fairlead.io/quota"
CONDITION = "fairlead.io/QuotaAdmitted"
SUSPENDED_FOR = "fairlead.io/suspended-for"
OWN_PARALLELISM = "fairlead.io/parallelism"
REFUSED = {
    "remove the gate": ("takes the scheduling gate fairlead.io/quota away",),
    "set the node": (
        "may not name its node",
        "nodeName: Forbidden: cannot be set until all schedulingGates",
    ),
}
"""Parts of the errors for a user; the error contains at least one of them. A real API server
refuses a pod with both a gate and a node before it evaluates Fairlead's policies.
"""
TRAINING_JOB = "training.kubeflow.org/job-name"


class Hands(Protocol):
    """The actions of a player in one kind of world, and what the player reads there."""

    def make(self, objects: list[Object]) -> None: ...

    def set_tree(self, tree: Object) -> None:
        """Writes the tree, and waits until it is in effect in all its namespaces."""

    def remove(self, plural: str, namespace: str, app: str) -> None:
        """Deletes all objects of this kind with this label `app`."""

    def roll(self, namespace: str, name: str) -> None:
        """Changes the template of a Deployment."""

    def attempt(self, does: str, namespace: str, app: str) -> str:
        """The API server's error for an ordinary user; "" if it accepted the attempt."""

    def settle(self, differences: Callable[[], list[str]], seconds: float) -> list[str]:
        """Waits until there are no differences, and then a moment longer, for at most a limit
        beyond `seconds`. Returns the remaining differences.
        """

    def pods(self) -> Iterable[Object]: ...

    def jobs(self) -> Iterable[Object]:
        """Jobs of all kinds that can be suspended."""

    def tree(self) -> Object: ...

    def planned(self, leaf: str) -> list[tuple[str, str]]:
        """Reason and message of all waiting units of a leaf in the current plan; empty where no
        plan can be read.
        """

    def stopped(self) -> dict[str, str]:
        """All admitted pods in the tree's namespaces that were deleted since the beginning:
        namespace by uid.
        """


class ScenarioPlayer:
    def __init__(self, scenario: Scenario, hands: Hands) -> None:
        self.scenario = scenario
        self.hands = hands
        self._removed: set[str] = set()
        self._spaces = {leaf.name: leaf.namespaces for leaf in scenario.root().leaves()}

    def play(self) -> None:
        """Raises AssertionError with the differences from the file."""
        self.hands.make([*namespaces(self.scenario), *priority_classes(self.scenario)])
        self.hands.set_tree(tree_object(self.scenario.root()))
        for number, step in enumerate(self.scenario.steps, 1):
            before = Counter(self._victims())
            self._begin(step)
            left = self.hands.settle(
                lambda step=step, before=before: self._differences(step.expect, before), step.wait
            )  # type: ignore[misc]
            left = left or self._unsaid(step.expect)
            assert not left, f"step {number} of `{self.scenario.title}`: {'; '.join(left)}"
            for attempt in step.attempts:
                self._attempt(attempt)

    def _begin(self, step: Step) -> None:
        if step.tree:
            root = self.scenario.root(step.tree)
            self._spaces = {leaf.name: leaf.namespaces for leaf in root.leaves()}
            self.hands.set_tree(tree_object(root))
        if step.budgets:
            self.hands.make([budget_object(self.scenario, budget) for budget in step.budgets])
        for workload in step.add:
            self.hands.make(workload_objects(self.scenario, workload))
        for key in step.remove:
            workload = self.scenario.workload(key)
            space = self.scenario.namespace(workload)
            self._removed |= {
                _uid(pod)
                for pod in self.hands.pods()
                if (_space(pod), _app(pod)) == (space, workload.name)
            }
            self.hands.remove(PLURALS[workload.kind], space, workload.name)
        for key in step.update:
            workload = self.scenario.workload(key)
            self.hands.roll(self.scenario.namespace(workload), workload.name)

    def _attempt(self, text: str) -> None:
        """`remove the gate of a/web`, or `set the node of a/web`: tried with a waiting pod, and
        with a new one.
        """
        does, _, key = text.rpartition(" of ")
        workload = self.scenario.workload(key)
        reported = self.hands.attempt(does, self.scenario.namespace(workload), workload.name)
        assert any(words in reported for words in REFUSED[does]), (
            f"{text}: {reported or 'he was let'}"
        )

    # --- observations -----------------------------------------------------------------------------

    def _differences(self, expect: Expectation, before: Counter[str]) -> list[str]:
        """Every difference between the world and the file."""
        pods = [pod for pod in self.hands.pods() if not _is_daemon(pod)]
        found = [f"{_app(pod)} of {_space(pod)} is stopping" for pod in pods if _is_stopping(pod)]
        for leaf, wanted in expect.running.items():
            self._compare(
                found,
                f"running in {leaf}",
                wanted,
                sum(_runs(pod) for pod in self._of(leaf, pods)),
            )
        victims = Counter(self._victims())
        self._compare(found, "evictions", expect.evictions, victims.total())
        if expect.victims is not None:
            leaf_of = {space: leaf for leaf, spaces in self._spaces.items() for space in spaces}
            self._compare(
                found,
                "victims",
                expect.victims,
                dict(Counter(leaf_of[space] for space in (victims - before).elements())),
            )
        for leaf, reasons in expect.waiting.items():
            self._compare_waiting(found, leaf, Counter(reasons), self._of(leaf, pods))
        self._compare(
            found,
            "untouched",
            expect.untouched,
            dict(Counter(_space(pod) for pod in pods if self._is_stranger(pod))),
        )
        for leaf in expect.daemons:
            daemons = [pod for pod in self._of(leaf, self.hands.pods()) if _is_daemon(pod)]
            self._compare(
                found,
                f"daemons in {leaf} that run untouched",
                [True] * max(1, len(daemons)),
                [_is_untouched(pod) for pod in daemons],
            )
        return found

    def _is_stranger(self, pod: Object) -> bool:
        """Whether the pod is in no namespace of the tree, and was left alone."""
        return all(_space(pod) not in spaces for spaces in self._spaces.values()) and _is_untouched(
            pod
        )

    def _unsaid(self, expect: Expectation) -> list[str]:
        """Expected messages that no unit has. If only the message changes, a pod's condition may be
        a minute old; the plan is current.
        """
        found: list[str] = []
        for leaf, sentences in expect.sentences.items():
            printed = {
                _printed(pod).get("message", "")
                for pod in self._of(leaf, self.hands.pods())
                if not _is_admitted(pod)
            }
            if not printed >= set(sentences):
                printed = {sentence for _, sentence in self.hands.planned(leaf)}
            found += [
                f"no pod in {leaf} has `{each}`, but {sorted(printed)}"
                for each in sentences
                if each not in printed
            ]
        for leaf, reasons in expect.waiting.items():
            if self._suspended(leaf) and (planned := self.hands.planned(leaf)):
                self._compare(
                    found,
                    f"reasons in {leaf}",
                    reasons,
                    dict(Counter(reason for reason, _ in planned)),
                )
        return found

    def _suspended(self, leaf: str) -> int:
        """Units of the leaf that have no pod: Jobs that quota suspended, and each pod by which
        quota lowered a batch Job.
        """
        return sum(
            _units_away(job) for job in self.hands.jobs() if _space(job) in self._spaces[leaf]
        )

    def _compare_waiting(
        self, found: list[str], leaf: str, wanted: Counter[str], pods: list[Object]
    ) -> None:
        """Compares waiting units by reason; a Job that quota suspended has no pod with
        the reason.
        """
        seen = Counter(
            {
                _unit(pod): str(_printed(pod).get("reason", ""))
                for pod in pods
                if not _is_admitted(pod)
            }.values()
        )
        away = self._suspended(leaf)
        if seen - wanted or (wanted - seen).total() != away:
            found.append(
                f"waiting in {leaf}: {dict(wanted)} are expected, {dict(seen)} and {away} "
                "without "
                "a pod are there"
            )
        rows = (self.hands.tree().get("status") or {}).get("nodes") or ()
        reported = next(
            ((row.get("waiting") or {}).get("units", 0) for row in rows if row["name"] == leaf), 0
        )
        self._compare(
            found, f"waiting units of {leaf} in the tree's status", wanted.total(), reported
        )

    @staticmethod
    def _compare(found: list[str], what: str, wanted: object, there: object) -> None:
        if wanted != there:
            found.append(f"{what}: {wanted} expected, {there} found")

    def _of(self, leaf: str, pods: Iterable[Object]) -> list[Object]:
        return [pod for pod in pods if _space(pod) in self._spaces[leaf]]

    def _victims(self) -> list[str]:
        """Namespaces of pods that were stopped, but not by the scenario itself."""
        return [space for uid, space in self.hands.stopped().items() if uid not in self._removed]


def _unit(pod: Object) -> tuple[str, ...]:
    """The key of the unit that is admitted together: a gang, or a single pod."""
    labels = pod["metadata"].get("labels") or {}
    gang = labels.get(GANG) or labels.get(TRAINING_JOB)
    return (_space(pod), "gang", gang) if gang else (_uid(pod),)


def _runs(pod: Object) -> bool:
    return (
        _is_admitted(pod)
        and not _is_stopping(pod)
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    )


def _is_admitted(pod: Object) -> bool:
    return all(gate["name"] != GATE for gate in pod["spec"].get("schedulingGates") or ())


def _is_untouched(pod: Object) -> bool:
    """Whether the pod runs, and was neither gated nor admitted; both leave traces."""
    labels = pod["metadata"].get("labels") or {}
    is_own = "fairlead.io/managed" in labels or _printed(pod)
    return (pod.get("status") or {}).get("phase") == "Running" and not is_own and _is_admitted(pod)


def _is_daemon(pod: Object) -> bool:
    return any(each["kind"] == "DaemonSet" for each in pod["metadata"].get("ownerReferences") or ())


def _is_stopping(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _units_away(job: Object) -> int:
    annotations = job["metadata"].get("annotations") or {}
    if "parallelism" not in job["spec"]:  # items of a list have no kind
        return int(SUSPENDED_FOR in annotations)
    runs = 0 if SUSPENDED_FOR in annotations else int(job["spec"]["parallelism"])
    return int(annotations.get(OWN_PARALLELISM, job["spec"]["parallelism"])) - runs


def _printed(pod: Object) -> Object:
    conditions: list[Object] = (pod.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == CONDITION), {})


def _space(obj: Object) -> str:
    return str(obj["metadata"]["namespace"])


def _app(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get("app", ""))


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])
