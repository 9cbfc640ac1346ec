"""Writes the objects of an installation: checks everything first, writes in order, removes what an
earlier installation had and this one has not, and waits until all is ready.

Each run does the same, whatever an interrupted run left: objects are applied by the server, and the
inventory lists them before they exist.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.apps.installation.alone import alone, always_held
from fairlead.apps.installation.losses import check, check_ends, check_loss
from fairlead.errors import FairleadError, UserError
from fairlead.model.actions import Manifest, ObjectRef, kind_titles, object_ref
from fairlead.model.installation import (
    INSTALLATION_LABEL,
    OLDEST_VERSION,
    SYSTEM_NAMESPACE,
    Installation,
)
from fairlead.ports import InstallationTarget, WorkLease
from fairlead.rules.installation.downgrade import (
    is_older,
    refuse_older,
    refuse_too_old,
)
from fairlead.rules.installation.finding_lists import lines
from fairlead.rules.installation.order import (
    DATA_KINDS,
    NAMESPACE,
    WORKLOADS,
    Identity,
    in_order,
    is_data,
    is_ready,
    is_webhooks,
    left_over,
    without_refusals,
)
from fairlead.rules.installation.refusals import (
    refuse_definition,
    refuse_ending,
    refuse_foreign_namespace,
    refuse_image,
    refuse_move,
    refuse_namespace,
    refuse_releases,
)
from fairlead.rules.installation.server_versions import (
    fitting_scheduler,
    older_server_hint,
    refuse_scheduler,
    refuse_server,
)
from fairlead.rules.installation.user_ends import (
    lacks_administrator,
)
from fairlead.settings import HELM_CHART
from fairlead.wire.installation.components import (
    account_limits,
    every_object,
    installed_objects,
)
from fairlead.wire.installation.inventory import (
    COMPLETE,
    WRITING,
    Inventory,
    parse_inventory,
    render_inventory,
)
from fairlead.wire.installation.people_parts import first_administrator
from fairlead.wire.installation.policies.policy_parts import WEBHOOK_SERVICE
from fairlead.wire.installation.values import render_values
from fairlead.wire.names import USERS
from fairlead.wire.people.people_actions import USER_KIND

_BEAT_SECONDS: Final = 1.0
_DEFINITION_SECONDS: Final = 30.0
_SERVER: Final = ("Deployment", WEBHOOK_SERVICE)

Report = Callable[[str], object]


class Wanted(Struct, frozen=True):
    """What is to be installed: Fairlead of a version, with the chosen values.

    `oldest`: the oldest version that understands what this one writes.
    """

    version: str
    chosen: Installation
    oldest: str = OLDEST_VERSION

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """In any order."""
        return tuple(installed_objects(self.chosen))

    @property
    def definitions(self) -> frozenset[Identity]:
        """Of all kinds that this version can define, with these values or others."""
        every = map(object_ref, every_object(self.chosen))
        return frozenset(each.identity for each in every if each.kind in DATA_KINDS)

    @property
    def values(self) -> str:
        """As the inventory keeps them."""
        return render_values(self.chosen)

    @property
    def namespace(self) -> str:
        """Of the inventory."""
        return self.chosen.namespace


class InstallationPlan(Struct, frozen=True):
    """What a run will do: `objects` in order, `removed` in order; `results`: what the API server
    would make of each object, None where its namespace does not exist yet. `before`: the inventory.
    `first`: the first administrator, if there is to be one.
    """

    objects: tuple[Manifest, ...]
    results: tuple[Manifest | None, ...]
    removed: tuple[ObjectRef, ...]
    before: Inventory | None
    wanted: Wanted
    first: Manifest | None = None


class Installer:
    """`report`: receives lines about the progress. `now`, `sleep`: seconds. `lease`: is held while
    objects are written; None = no other program writes them.
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

    def inventory(self, first: str = SYSTEM_NAMESPACE) -> Inventory | None:
        """Of the installation in this cluster; None if there is none.

        `first`: the namespace that is looked at first.
        """
        found = self._cluster.inventory(first)
        return None if found is None else parse_inventory(found)

    def plan(
        self, wanted: Wanted, *, is_forced: bool = False, may_go_back: bool = False
    ) -> InstallationPlan:
        """Checks everything and writes nothing. Raises UserError with all that is refused.

        `may_go_back`: an older version than the installed one is accepted if it loses nothing.
        """
        self._check_server(wanted.chosen)
        offered = wanted.objects
        wanted_spaces = [each for each in offered if each["kind"] == NAMESPACE]
        spaces = [self._cluster.get(object_ref(each)) for each in wanted_spaces]
        for found, each in zip(spaces, wanted_spaces, strict=True):
            if not is_data(object_ref(each)):
                hint = "wait until it is gone, or use Helm for its release"
                check(refuse_namespace(found), hint)
            else:
                check(refuse_ending(found), "wait until it is gone")
        releases = self._cluster.helm_releases(wanted.namespace, HELM_CHART)
        check(refuse_releases(releases), "use `helm upgrade` or `helm uninstall` for it")
        before = self.inventory(wanted.namespace)
        self._check_spaces(spaces, wanted_spaces, before)
        if before is not None:
            hint = "leave out the value `namespace`; or uninstall, and install again"
            check(refuse_move(before.namespace, wanted.namespace), hint)
            _check_version(before, wanted.version, may_go_back=may_go_back)
            image = refuse_image(before.version, wanted.version, wanted.chosen.image)
            check(image, "name the new one: `--set image=NAME:TAG`")
        objects = in_order(self._without_foreign(offered, before))
        self._check_served(objects)
        existing = {each["metadata"]["name"] for each in spaces if each is not None}
        lacking = {each["metadata"]["name"] for each in wanted_spaces} - existing
        check_loss(self._cluster, objects)
        first = self._first_administrator(wanted.chosen)
        results = self._trial(
            objects, is_forced=is_forced, lacking_spaces=lacking, also=[first] if first else []
        )
        removed = left_over(before.objects, objects, account_limits()) if before else []
        check_ends(self._cluster, {each.name for each in removed if each.kind in WORKLOADS})
        return InstallationPlan(
            tuple(objects), tuple(results), tuple(removed), before, wanted, first
        )

    def carry_out(
        self, plan: InstallationPlan, *, is_forced: bool = False, wait_seconds: float = 0.0
    ) -> None:
        """Writes and removes what the plan has.

        The next run finishes an interrupted one. `wait_seconds`: how long to wait until new
        webhooks can be answered; until then they refuse nothing. 0 = they are in force at once.
        Raises UserError if they cannot, or if another program works on the installation.
        """
        writing, complete = inventories(plan)
        is_recorded = plan.before == complete
        if not is_recorded:
            for each in plan.objects:
                if each["kind"] == NAMESPACE:
                    self._cluster.put(each, is_forced=is_forced)
        namespace = plan.wanted.namespace
        with alone(self._lease, lambda: self.inventory(namespace) == plan.before) as check_lease:
            self._check_lease = check_lease
            if not is_recorded:
                self._put(render_inventory(writing), is_forced=True)
            self._write(plan, is_forced=is_forced, wait_seconds=wait_seconds)
            if not is_recorded:
                self._put(render_inventory(complete), is_forced=True)

    def _write(self, plan: InstallationPlan, *, is_forced: bool, wait_seconds: float) -> None:
        refs = tuple(object_ref(each) for each in plan.objects)
        unanswered: list[Manifest] = []
        is_waiting = wait_seconds > 0 and not self._cluster.is_simulated()
        for number, each in enumerate(plan.objects, 1):
            self._report(f"[{number}/{len(plan.objects)}] {object_ref(each).title}")
            if is_waiting and is_webhooks(each) and not self._is_ready(object_ref(each)):
                unanswered.append(each)
                self._put(without_refusals(each), is_forced=is_forced)
                continue
            self._put(each, is_forced=is_forced)
            if each["kind"] in DATA_KINDS:
                self.wait_ready([object_ref(each)], _DEFINITION_SECONDS)
        if unanswered:
            server = [each for each in refs if (each.kind, each.name) == _SERVER]
            self.wait_ready([*server, *map(object_ref, unanswered)], wait_seconds)
        for each in unanswered:
            self._put(each, is_forced=is_forced)
        if plan.first is not None:
            self._put(plan.first)
            self._report(f"made {object_ref(plan.first).title}, the first administrator")
        for target in plan.removed:
            self._report(f"removed {target.title}")
            self._check_lease()
            self._cluster.remove(target)

    def wait_ready(self, targets: Sequence[ObjectRef], seconds: float) -> None:
        """Waits until all are ready. Raises UserError after `seconds`, with those that are not."""
        end = self._now() + seconds
        waiting = list(targets)
        reported = ""
        while waiting:
            waiting = [each for each in waiting if not self._is_ready(each)]
            if not waiting:
                return
            names = ", ".join(each.title for each in waiting)
            if names != reported:
                self._report(f"waiting for {names}")
                reported = names
            if self._now() >= end:
                hint = f"`{_look_at(waiting)}` shows the reason; the same command continues to wait"
                raise UserError(f"after {seconds:.0f} s not ready: {names}", hint)
            self._sleep(_BEAT_SECONDS)

    def _put(self, manifest: Manifest, *, is_forced: bool = False) -> None:
        self._check_lease()
        self._cluster.put(manifest, is_forced=is_forced)

    def _check_server(self, chosen: Installation) -> None:
        """Raises UserError for an API server that is too old for these values."""
        server = self._cluster.server_version()
        if server is not None:
            check(refuse_server(server, chosen), older_server_hint(server, chosen))
            check(refuse_scheduler(server, chosen), fitting_scheduler(server, chosen))

    def _check_spaces(
        self,
        spaces: Sequence[Manifest | None],
        wanted: Sequence[Manifest],
        before: Inventory | None,
    ) -> None:
        """Raises UserError for a namespace that exists and is not Fairlead's."""
        recorded = {each.identity for each in before.objects} if before else set()
        for found, each in zip(spaces, wanted, strict=True):
            target = object_ref(each)
            if found is not None and not is_data(target) and target.identity not in recorded:
                name = each["metadata"]["name"]
                label = f"{INSTALLATION_LABEL}={each['metadata']['labels'][INSTALLATION_LABEL]}"
                hint = (
                    f"name another one, or give it to Fairlead, which will label it and delete it "
                    f"at the end: `kubectl label namespace {name} {label}`"
                )
                check(refuse_foreign_namespace(found), hint)

    def _without_foreign(
        self, objects: Sequence[Manifest], before: Inventory | None
    ) -> list[Manifest]:
        """Without definitions and a users namespace that another program made; raises UserError for
        a definition that does not fit. What an earlier installation wrote and left is no other
        program's.
        """
        recorded = {each.identity for each in before.objects} if before else set()
        kept = []
        for each in objects:
            target = object_ref(each)
            if is_data(target) and target.identity not in recorded:
                found = self._cluster.get(target)
                if found is not None and not self._cluster.written([target]):
                    if each["kind"] in DATA_KINDS:
                        hint = "remove it with its objects, or install without quota and users"
                        check(refuse_definition(found, each), hint)
                    self._report(f"{target.title} exists and fits: it is used as it is")
                    continue
            kept.append(each)
        return kept

    def _first_administrator(self, chosen: Installation) -> Manifest | None:
        if not (chosen.parts.people and chosen.first_administrator):
            return None
        users = self._cluster.list_objects(USER_KIND)
        return first_administrator() if lacks_administrator(users) else None

    def _check_served(self, objects: Sequence[Manifest]) -> None:
        unserved = self._cluster.unserved(map(object_ref, objects))
        if unserved:
            hint = "older API servers need `--set admission=webhooks`; docs/how-to/install.md"
            raise UserError(f"the cluster does not serve {', '.join(kind_titles(unserved))}", hint)

    def _trial(
        self,
        objects: Sequence[Manifest],
        *,
        is_forced: bool,
        lacking_spaces: Collection[str],
        also: Sequence[Manifest],
    ) -> list[Manifest | None]:
        """What each object would become; None if that cannot be tried, then rights are checked.

        `also`: users, for which only rights are checked.
        """
        untested = {id(each) for each in self._without_parameter(objects)}
        untried = [
            each
            for each in objects
            if each["metadata"].get("namespace") in lacking_spaces or id(each) in untested
        ]
        tried = [each for each in objects if each not in untried]
        answers = self._cluster.try_objects(tried, is_forced=is_forced)
        faults = [
            f"{object_ref(each).title}: {_sentence(answer)}"
            for each, answer in zip(tried, answers, strict=True)
            if isinstance(answer, Exception)
        ]
        leases = [] if self._lease is None else [self._lease.target]
        users = (object_ref(each, plural=USERS) for each in also)
        refused = self._cluster.may_write([*map(object_ref, untried), *users, *leases])
        faults += [f"{each.title}: you may not create and patch it" for each in refused]
        if faults:
            raise _refused(faults)
        results = iter(answers)
        return [
            None if each in untried else answer if isinstance(answer := next(results), dict) else {}
            for each in objects
        ]

    def _without_parameter(self, objects: Sequence[Manifest]) -> Iterator[Manifest]:
        """Policies whose parameter's kind is defined only later in this run, and bindings of a
        policy with a parameter that is written only later in this run.

        Until then the API server asks the user for a right to read all kinds.
        """
        lacking = set()
        for each in objects:
            kind = each.get("spec", {}).get("paramKind")
            if kind is None:
                continue
            if self._cluster.unserved([ObjectRef(kind["apiVersion"], kind["kind"], "")]):
                yield each
            elif self._cluster.get(object_ref(each)) is not None:
                continue
            lacking.add(each["metadata"]["name"])
        for each in objects:
            if each.get("spec", {}).get("policyName") in lacking:
                yield each

    def _is_ready(self, target: ObjectRef) -> bool:
        found = self._cluster.get(target)
        if found is not None and is_webhooks(found) and self._cluster.is_simulated():
            return True  # there no server answers webhooks, and the API server asks none
        return found is not None and is_ready(found)


def _check_version(before: Inventory, offered: str, *, may_go_back: bool) -> None:
    hint = f"use the fairlead of version {before.version} or later"
    check(refuse_too_old(before.version, offered, before.oldest), hint)
    if not may_go_back:
        back = "`fairlead upgrade --allow-downgrade` goes back"
        check(refuse_older(before.version, offered), f"{hint}; {back}")


def inventories(plan: InstallationPlan) -> tuple[Inventory, Inventory]:
    """From the first write to the last, with the objects of both versions; and after it."""
    refs = tuple(object_ref(each) for each in plan.objects)
    earlier = plan.before.objects if plan.before else ()
    new = {each.identity for each in refs}
    both = (*refs, *(each for each in earlier if each.identity not in new))
    complete = _inventory(plan, COMPLETE, (*refs, *_unknown_definitions(plan)))
    return _inventory(plan, WRITING, both), complete


def _inventory(plan: InstallationPlan, state: str, objects: Sequence[ObjectRef]) -> Inventory:
    """As this run leaves it. After a downgrade, what the newer version has written is still in the
    cluster, so the oldest version that understands it stays, too.
    """
    wanted, before = plan.wanted, plan.before
    oldest = wanted.oldest
    is_newer = before is None or is_older(before.version, wanted.version)
    if before is not None and not is_newer and is_older(oldest, before.oldest):
        oldest = before.oldest
    return Inventory(
        wanted.version, state, wanted.values, tuple(objects), wanted.namespace, oldest=oldest
    )


def _unknown_definitions(plan: InstallationPlan) -> list[ObjectRef]:
    """Definitions that only another version has; they stay, with their objects."""
    earlier = plan.before.objects if plan.before else ()
    known = plan.wanted.definitions
    return [each for each in earlier if each.kind in DATA_KINDS and each.identity not in known]


def _refused(faults: Sequence[str]) -> UserError:
    count = "1 object is" if len(faults) == 1 else f"{len(faults)} objects are"
    what = f"{count} refused, and nothing was written:\n{lines(faults)}"
    hint = "run it as a user with these rights; --force-conflicts takes over fields of others"
    return UserError(what, hint)


def _sentence(error: Exception) -> str:
    return error.what if isinstance(error, FairleadError) else str(error)


def _look_at(waiting: Sequence[ObjectRef]) -> str:
    """The command that shows why these are not ready.

    >>> webhook = ObjectRef("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "w")
    >>> _look_at([webhook])
    'kubectl get MutatingWebhookConfiguration w -o yaml'
    >>> _look_at([webhook, ObjectRef("apps/v1", "Deployment", "console", "fairlead-system")])
    'kubectl -n fairlead-system describe pods'
    """
    spaces = [each.namespace for each in waiting if each.namespace]
    if spaces:
        return f"kubectl -n {spaces[0]} describe pods"
    return f"kubectl get {waiting[0].kind} {waiting[0].name} -o yaml"
