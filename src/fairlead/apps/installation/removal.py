"""Removes an installation: admission first, then the gates of waiting pods, then all other objects;
the namespaces last. A run that is interrupted is finished by the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.errors import UserError
from fairlead.model.actions import ObjectRef, object_ref
from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.model.keys import QUOTA_GATE
from fairlead.ports import InstallationTarget
from fairlead.rules.installation.order import DATA_KINDS, NAMESPACE, is_admission, removal_order
from fairlead.rules.installation.refusals import refuse_waiting
from fairlead.settings import HELM_CHART
from fairlead.wire.installation.inventory import parse_inventory
from fairlead.wire.installation.release import parse_release

_BEAT_SECONDS: Final = 0.5
_RELEASE: Final = (
    "--release-waiting lets them start without quota; or delete them, or wait until they run"
)

Report = Callable[[str], object]


class Removal:
    """`report`: receives lines about the progress. `now`, `sleep`: seconds."""

    def __init__(
        self,
        cluster: InstallationTarget,
        report: Report,
        now: Callable[[], float],
        sleep: Callable[[float], object],
    ) -> None:
        self._cluster = cluster
        self._report = report
        self._now = now
        self._sleep = sleep

    def planned(self, *, with_data: bool) -> list[ObjectRef]:
        """What would be removed, in order; empty if only the namespaces' end is awaited.

        Raises UserError if the cluster has no installation of `fairlead install`.
        """
        found = self._cluster.inventory(SYSTEM_NAMESPACE)
        if found is None:
            if self._ending():
                return []
            what = "this cluster has no inventory: `fairlead install` wrote none"
            hint = "`kubectl delete -f deploy/` removes what was applied from files, Helm its own"
            raise UserError(what, hint)
        objects = parse_inventory(found).objects
        return removal_order(each for each in objects if with_data or each.kind not in DATA_KINDS)

    def planned_for_helm(self) -> list[ObjectRef]:
        """What ends before Helm removes a release: admission, in order.

        Raises UserError if the cluster has no release of the chart.
        """
        found = self._cluster.release(SYSTEM_NAMESPACE, HELM_CHART)
        if found is None:
            what = "this cluster has no record of a Helm release"
            raise UserError(what, "`fairlead uninstall` removes what `fairlead install` wrote")
        return removal_order(each for each in parse_release(found).objects if is_admission(each))

    def let_go(self, targets: list[ObjectRef], *, is_releasing: bool, seconds: float) -> None:
        """Ends admission and opens gates, which is the beginning of `carry_out`."""
        self._let_go(targets, is_releasing=is_releasing, end=self._now() + seconds)

    def carry_out(self, targets: list[ObjectRef], *, is_releasing: bool, seconds: float) -> None:
        """Raises UserError if pods wait at the gate and are not to be released, or if the end does
        not come within `seconds`.
        """
        end = self._now() + seconds
        self._let_go(targets, is_releasing=is_releasing, end=end)
        for each in targets:
            if not is_admission(each):
                self._remove(each)
        self._wait_gone(targets, end)

    def _let_go(self, targets: list[ObjectRef], *, is_releasing: bool, end: float) -> None:
        self._check_waiting(is_releasing=is_releasing)
        for each in targets:
            if is_admission(each):
                self._remove(each)
        self._check_waiting(is_releasing=is_releasing)
        self._release(end)

    def _remove(self, target: ObjectRef) -> None:
        is_gone = not self._cluster.remove(target)
        self._report(f"{'absent' if is_gone else 'removed'} {target.title}")

    def _check_waiting(self, *, is_releasing: bool) -> None:
        refusal = refuse_waiting(self._cluster.gated_pods(QUOTA_GATE), QUOTA_GATE)
        if refusal is not None and not is_releasing:
            raise UserError(refusal.reason, _RELEASE)

    def _release(self, end: float) -> None:
        """Opens the gates. The API server needs a moment until a removed policy is not in force."""
        while waiting := self._cluster.gated_pods(QUOTA_GATE):
            opened = [each for each in waiting if self._cluster.open_gate(each, QUOTA_GATE)]
            for each in opened:
                self._report(f"released pod {each.namespace}/{each.name}")
            if self._now() >= end:
                raise UserError(f"{len(waiting)} pods still wait at the gate", "run it again")
            if len(opened) < len(waiting):
                self._sleep(_BEAT_SECONDS)

    def _wait_gone(self, targets: list[ObjectRef], end: float) -> None:
        """Until definitions and the namespaces are gone, with everything in them."""
        spaces = [each for each in targets if each.kind == NAMESPACE] or self._ending()
        for each in (*(one for one in targets if one.kind in DATA_KINDS), *spaces):
            self._report(f"waiting until {each.kind} {each.name} is gone")
            while self._cluster.get(each) is not None:
                if self._now() >= end:
                    what = f"{each.kind} `{each.name}` is still being deleted"
                    hint = f"`kubectl get {each.kind} {each.name} -o yaml` shows what remains"
                    raise UserError(what, hint)
                self._sleep(_BEAT_SECONDS)

    def _ending(self) -> list[ObjectRef]:
        """Namespaces of an installation that are being deleted."""
        found = self._cluster.installation_namespaces()
        return [object_ref(each) for each in found if each["metadata"].get("deletionTimestamp")]
