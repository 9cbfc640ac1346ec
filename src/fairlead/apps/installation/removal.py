"""Removes an installation: admission first, then the workloads, then what waits for them is let go,
and users lose the rights that the people controller gave them; all other objects after that, the
namespaces last. Policies that limit Fairlead's own accounts stay until its pods and their rights
are gone.

Each run does the same, whatever an interrupted run left. Workloads end before gates open, because a
running quota controller would hold back again what was let go, and a people controller would make
again what was withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.apps.installation.alone import alone, always_held
from fairlead.apps.installation.held_back import HeldBack, held_back
from fairlead.apps.installation.user_ends import end_users, ends_of_users
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.model.actions import Manifest, ObjectRef, PatchObject, object_ref
from fairlead.model.installation import (
    INSTALLATION_LABEL,
    NODE_NAMESPACE,
    NODE_PART,
    SYSTEM_NAMESPACE,
    SYSTEM_PART,
    Installation,
)
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.refusal import Refusal
from fairlead.ports import InstallationTarget, WorkLease
from fairlead.rules.installation.endings import defined_kind, held_sentence, is_stopped
from fairlead.rules.installation.finding_lists import counted, lines
from fairlead.rules.installation.order import (
    CLAIM,
    DATA_KINDS,
    NAMESPACE,
    WORKLOADS,
    is_admission,
    is_data,
    removal_order,
)
from fairlead.rules.installation.refusals import refuse_releases
from fairlead.rules.installation.traces import traces_of
from fairlead.settings import (
    CONSOLE_POD,
    HELM_CHART,
    PEOPLE_CONTROLLER_POD,
    SIGN_IN_KEY_SECRET,
)
from fairlead.wire.installation.components import account_limits, every_object
from fairlead.wire.installation.inventory import inventory_ref, parse_inventory
from fairlead.wire.installation.policies.policy_parts import WEBHOOK_SERVICE
from fairlead.wire.installation.release import parse_release

_BEAT_SECONDS: Final = 0.5
_TRACED: Final = (ObjectRef("v1", "Node", ""), ObjectRef("v1", NAMESPACE, ""))
_RELEASE: Final = (
    "--release-waiting lets pods and jobs go on without quota; pods of the scheduler never start: "
    "delete them"
)

Report = Callable[[str], object]


class Removable(Struct, frozen=True):
    """What a run removes: `targets` in order, and `traces` on nodes and namespaces.

    `has_people`: users lose what the people controller made for them. `recorded`: what the
    inventory holds; None = there is none.
    """

    targets: tuple[ObjectRef, ...]
    traces: tuple[PatchObject, ...] = ()
    has_people: bool = False
    recorded: Manifest | None = None


class Removal:
    """`report`: receives lines about the progress. `now`, `sleep`: seconds. `lease`: is held while
    objects are removed; None = no other program writes them.
    """

    def __init__(
        self,
        cluster: InstallationTarget,
        report: Report,
        now: Callable[[], float],
        sleep: Callable[[float], object],
        lease: WorkLease | None = None,
    ) -> None:
        self._cluster = cluster
        self._report = report
        self._now = now
        self._sleep = sleep
        self._lease = lease
        self._check_lease: Callable[[], None] = always_held
        self._limits = account_limits()

    def plan(self, *, with_data: bool) -> Removable:
        """Checks every right and writes nothing.

        Raises UserError if there is nothing to remove, and with all that may not be removed.
        """
        found = self._cluster.inventory(SYSTEM_NAMESPACE)
        objects = self._objects(found)
        removable = objects if with_data else self._without_data(objects)
        targets = removal_order(removable, self._limits)
        traces = self._traces() if with_data else []
        if not targets and not traces:
            raise _nothing(objects)
        return replace(self._checked(targets, traces), recorded=_recorded(found))

    def _without_data(self, objects: Sequence[ObjectRef]) -> list[ObjectRef]:
        """What is removed while records stay. A namespace with the volume of the console's store
        stays with it, and loses what else Fairlead wrote there.
        """
        kept = {each.namespace for each in _claims(objects) if self._cluster.get(each) is not None}
        removable = [
            each
            for each in objects
            if not is_data(each) and not (each.kind == NAMESPACE and each.name in kept)
        ]
        if removable:
            removable += [each for place in kept for each in _written_inside(place)]
        return removable

    def plan_for_helm(self) -> Removable:
        """What ends before Helm removes a release: admission and workloads.

        Checks every right and writes nothing. Raises UserError if the cluster has no release of the
        chart, and with all that may not be removed.
        """
        found = self._cluster.release(SYSTEM_NAMESPACE, HELM_CHART)
        if found is None:
            what = "this cluster has no record of a Helm release"
            raise UserError(what, "`fairlead uninstall` removes what `fairlead install` wrote")
        targets = removal_order(
            (
                each
                for each in parse_release(found).objects
                if is_admission(each) or each.kind in WORKLOADS
            ),
            self._limits,
        )
        return self._checked(targets)

    def carry_out(self, plan: Removable, *, is_releasing: bool, seconds: float) -> None:
        """Raises UserError if pods or jobs wait and are not to be released, if the end does not
        come within `seconds`, or if another program works on the installation; the next run goes
        on.
        """
        end = self._now() + seconds
        with alone(self._lease, lambda: self._is_as_planned(plan)) as self._check_lease:
            unscheduled = self._write(plan, end, is_releasing=is_releasing)
        places = _places(plan)
        self._wait_gone([each for each in plan.targets if _ends_with(each, places)], end)
        for pod in unscheduled:
            self._report(f"pod {pod.namespace}/{pod.name} never starts: delete it")

    def _is_as_planned(self, plan: Removable) -> bool:
        return _recorded(self._cluster.inventory(SYSTEM_NAMESPACE)) == plan.recorded

    def _write(self, plan: Removable, end: float, *, is_releasing: bool) -> Sequence[ObjectRef]:
        """The pods that wait for a scheduler that is gone."""
        self._check_waiting(is_releasing=is_releasing)
        # A policy of Fairlead's own accounts blocks no user, and limits pods that still run.
        first = [
            each
            for each in plan.targets
            if is_admission(each) and each.identity not in self._limits
        ]
        for each in first:
            self._remove(each)
        unscheduled = self._check_waiting(is_releasing=is_releasing).unscheduled
        self._stop([each for each in plan.targets if each.kind in WORKLOADS], end)
        self._release(end)
        if plan.has_people:
            end_users(
                self._cluster,
                self._report,
                lambda why: self._try_again(why, end),
                lambda: self._check_lease(),
            )
        self._erase(plan.traces, end)
        for each in plan.targets:
            if each not in first and each.kind not in (*WORKLOADS, NAMESPACE):
                self._remove(each)
        # The inventory is in a namespace: while objects outside of it remain, it remains.
        places = _places(plan)
        self._wait_gone([each for each in plan.targets if not _ends_with(each, places)], end)
        for each in plan.targets:
            if each.kind == NAMESPACE:
                self._remove(each)
        return unscheduled

    def _objects(self, found: Manifest | None) -> list[ObjectRef]:
        """From the inventory `found`; without a readable one, all that the installer wrote.

        Raises UserError beside a Helm release: it uses what an earlier installation left.
        """
        try:
            if found is not None:
                return list(parse_inventory(found).objects)
        except OutsideError as error:
            self._report(f"{error.what}; objects are found without it")
        releases = self._cluster.helm_releases(SYSTEM_NAMESPACE, HELM_CHART)
        refusal = refuse_releases(releases)
        if refusal is not None:
            raise UserError(refusal.reason, f"`helm uninstall {releases[0]}` removes it")
        names = {SYSTEM_PART: SYSTEM_NAMESPACE, NODE_PART: NODE_NAMESPACE}
        for space in self._cluster.installation_namespaces():
            meta = space["metadata"]
            names[meta["labels"][INSTALLATION_LABEL]] = meta["name"]
        chosen = Installation(namespace=names[SYSTEM_PART], node_namespace=names[NODE_PART])
        return self._cluster.written(map(object_ref, every_object(chosen)))

    def _traces(self) -> list[PatchObject]:
        found = chain.from_iterable(map(self._cluster.list_objects, _TRACED))
        return [patch for each in found for patch in traces_of(each)]

    def _checked(
        self, targets: Sequence[ObjectRef], traces: Sequence[PatchObject] = ()
    ) -> Removable:
        has_people = any(each.name == PEOPLE_CONTROLLER_POD for each in targets)
        made, patches = ends_of_users(self._cluster) if has_people else ([], [])
        # Rights are the same for all objects of a kind in a namespace.
        places = {(each.kind, each.namespace): each for each in made}
        self._check_rights([*targets, *places.values()], [*traces, *patches])
        return Removable(tuple(targets), tuple(traces), has_people)

    def _check_rights(self, targets: Sequence[ObjectRef], traces: Sequence[PatchObject]) -> None:
        answers = self._cluster.try_remove(targets)
        faults = [
            f"{each.title}: {answer.what if isinstance(answer, FairleadError) else answer}"
            for each, answer in zip(targets, answers, strict=True)
            if answer is not None
        ]
        for part in sorted({each.subresource for each in traces}):
            refs = [each.target for each in traces if each.subresource == part]
            faults += [
                f"{each.title}: you may not patch it{f' ({part})' if part else ''}"
                for each in self._cluster.may_patch(refs, part)
            ]
        if faults:
            count = counted(len(faults), "object")
            what = f"{count} may not be removed, and nothing was removed:\n{lines(faults)}"
            raise UserError(what, "run it as a user with these rights")

    def _check_waiting(self, *, is_releasing: bool) -> HeldBack:
        waiting = held_back(self._cluster)
        reasons = [*waiting.for_quota(), *waiting.for_scheduler()]
        if reasons and not is_releasing:
            raise UserError("; ".join(reasons), _RELEASE)
        kept = self._cluster.may_patch([*waiting.gated, *(each.target for each in waiting.jobs)])
        if kept:
            names = ", ".join(each.title for each in kept)
            raise UserError(f"you may not patch {names}", "run it as a user with these rights")
        return waiting

    def _remove(self, target: ObjectRef, *, is_foreground: bool = False) -> None:
        self._check_lease()
        is_gone = not self._cluster.remove(target, is_foreground=is_foreground)
        self._report(f"{'absent' if is_gone else 'removed'} {target.title}")

    def _stop(self, workloads: Sequence[ObjectRef], end: float) -> None:
        for each in workloads:
            self._remove(each, is_foreground=True)
        self._wait(workloads, end, is_stopped)

    def _release(self, end: float) -> None:
        """Opens gates and resumes jobs.

        The API server needs a moment until a removed policy is not in force.
        """
        while True:
            waiting = held_back(self._cluster)
            if not waiting.gated and not waiting.jobs:
                return
            answers = [
                *((each, self._opened(each)) for each in waiting.gated),
                *((each.target, self._changed(each)) for each in waiting.jobs),
            ]
            for each, refusal in answers:
                if refusal is None:
                    self._report(f"released {each.kind.lower()} {each.namespace}/{each.name}")
            refused = [(each, refusal) for each, refusal in answers if refusal is not None]
            if self._now() >= end:
                raise _still_waiting(len(answers), refused)
            if refused:
                self._sleep(_BEAT_SECONDS)

    def _opened(self, pod: ObjectRef) -> Refusal | None:
        self._check_lease()
        return self._cluster.open_gate(pod, QUOTA_GATE)

    def _changed(self, patch: PatchObject) -> Refusal | None:
        self._check_lease()
        return self._cluster.change(patch)

    def _erase(self, traces: Sequence[PatchObject], end: float) -> None:
        for each in traces:
            while (refusal := self._changed(each)) is not None:
                self._try_again(f"{each.target.title}: {refusal.reason}", end)
            self._report(f"cleaned {each.target.title}")

    def _try_again(self, why: str, end: float) -> None:
        """Waits before the next try. Raises UserError at the end."""
        if self._now() >= end:
            what = f"the API server refuses to remove what Fairlead wrote on {why}"
            raise UserError(what, "a policy of the cluster may protect it")
        self._sleep(_BEAT_SECONDS)

    def _wait_gone(self, targets: Sequence[ObjectRef], end: float) -> None:
        self._wait(targets, end, lambda found: found is None)

    def _wait(
        self,
        targets: Sequence[ObjectRef],
        end: float,
        is_over: Callable[[Manifest | None], bool],
    ) -> None:
        left = list(targets)
        is_reported = False
        while left := [each for each in left if not is_over(self._cluster.get(each))]:
            if not is_reported:
                is_reported = True
                self._report(f"waiting for the end of {', '.join(each.title for each in left)}")
            if self._now() >= end:
                hint = (
                    "remove a finalizer if its program does not exist any more; the same command "
                    "goes on"
                )
                raise UserError(held_sentence(left, self._held(left)), hint)
            self._sleep(_BEAT_SECONDS)

    def _held(self, left: Sequence[ObjectRef]) -> list[Manifest]:
        """What keeps these objects: finalizers of theirs, or objects inside of them."""
        found: list[Manifest] = []
        for each in left:
            manifest = self._cluster.get(each)
            if manifest is not None and manifest["metadata"].get("finalizers"):
                found.append(manifest)
            if manifest is not None and each.kind in DATA_KINDS:
                found += self._cluster.list_objects(defined_kind(manifest))
        places = dict.fromkeys(
            each.name if each.kind == NAMESPACE else each.namespace for each in left
        )
        for place in filter(None, places):
            found += self._cluster.ending_objects(place)
        return list({object_ref(each).identity: each for each in found}.values())


def _still_waiting(count: int, refused: Sequence[tuple[ObjectRef, Refusal]]) -> UserError:
    """With the newest answer about the first of them."""
    waits = "1 pod or job still waits" if count == 1 else f"{count} pods and jobs still wait"
    if not refused:
        return UserError(f"{waits} for quota", "run it again")
    first, refusal = refused[0]
    what = f"{waits} for quota; the API server refuses to let {first.title} go: {refusal.reason}"
    return UserError(what, "end what refuses it, or delete what waits; the same command goes on")


def _claims(objects: Sequence[ObjectRef]) -> list[ObjectRef]:
    """The volume of the console's store in each namespace; an upgrade may have left it."""
    places = [each.name for each in objects if each.kind == NAMESPACE and not is_data(each)]
    return [ObjectRef("v1", CLAIM, CONSOLE_POD, place) for place in places]


def _written_inside(place: str) -> tuple[ObjectRef, ...]:
    """What processes of an installation, or the command itself, write into its namespace."""
    return (
        ObjectRef("v1", "Secret", SIGN_IN_KEY_SECRET, place),
        ObjectRef("v1", "Secret", WEBHOOK_SERVICE, place),
        inventory_ref(place),
    )


def _nothing(objects: Sequence[ObjectRef]) -> UserError:
    if objects:
        names = ", ".join(each.title for each in objects)
        return UserError(f"only {names} is left", "--delete-data removes it with its objects")
    what = (
        "this cluster has no inventory, and no object that `fairlead install` wrote: nothing to "
        "remove"
    )
    return UserError(what, "`kubectl delete -f deploy/` removes what was applied from files")


def _recorded(inventory: Manifest | None) -> Manifest | None:
    return None if inventory is None else inventory.get("data")


def _places(plan: Removable) -> list[str]:
    """The namespaces that end, with all that is inside."""
    return [each.name for each in plan.targets if each.kind == NAMESPACE]


def _ends_with(target: ObjectRef, namespaces: Sequence[str]) -> bool:
    return target.namespace in namespaces or (
        target.kind == NAMESPACE and target.name in namespaces
    )
