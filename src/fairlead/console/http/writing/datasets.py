"""Writes of the page Datasets: each is an operation, of which the page then shows the steps.

Specification: docs/spec/console.md#writing-data-sets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from fairlead.console.boards.data.dataset_rows import DATA_SET, data_set_of
from fairlead.console.http.data.operation_desk import OperationDesk
from fairlead.console.http.data.read_data import ReadData
from fairlead.console.http.subjects import subject_of
from fairlead.console.http.writing.frame import Blocked, PlannedWrite, Written, invalid, not_there
from fairlead.console.http.writing.operations import begun_answer
from fairlead.console.pages.data.datasets import (
    AccelerationCheck,
    AccelerationOrder,
    AccelerationPreview,
    ChosenAcceleration,
    DataSetOrder,
    PreheatOrder,
)
from fairlead.console.pages.data.operation_ids import new_id
from fairlead.console.pages.envelope import FieldFault
from fairlead.console.pages.writing.preview import Effect
from fairlead.errors import OutsideError
from fairlead.model.actions import Manifest
from fairlead.model.installed.finding import Finding, State
from fairlead.model.jobs.acceleration import Acceleration, AccelerationFacts, Medium
from fairlead.model.jobs.data_details import Preheat
from fairlead.model.jobs.datasets import FoundData
from fairlead.model.operations.operation import Operation, OperationKind
from fairlead.model.records.audit import AuditTarget
from fairlead.model.resources import MEMORY
from fairlead.rules.data.acceleration import (
    begun_data_set,
    blockers,
    check_acceleration,
    chosen_acceleration,
    default_name,
)
from fairlead.rules.data.plans import (
    acceleration_steps,
    data_set_parts,
    data_set_subject,
    preheat_steps,
    unacceleration_steps,
)
from fairlead.rules.data.preheat import check_preheat, load_name
from fairlead.rules.operations.progress import planned
from fairlead.wire.data.data_load import render_preheat
from fairlead.wire.data.fluid import render_acceleration
from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.kube.quantity import parse_quantity, render_amount
from fairlead.wire.text.cron_schedule import parse_schedule

MOST_WORKERS: Final = 1000
_FIELD_OF: Final = {
    "name": "name",
    "name-free": "name",
    "nodes": "workers",
    "room": "quota",
    "paths": "paths",
    "replicas": "replicas",
    "secret": "secret",
}
"""The field of the form at which a failed check stands; others concern the claim itself."""
_PLAIN: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


class DataPlans(Struct, frozen=True):
    """The writes of data sets. `data`: what is there; `desk`: where operations are recorded."""

    data: ReadData
    desk: OperationDesk

    async def accelerate(self, request: Request, order: AccelerationOrder) -> PlannedWrite:
        """A data set over a claim. Raises Refused: 404 for an unknown claim, 422 for a field that
        cannot be read.
        """
        namespace, claim = (request.path_params[key][:253] for key in ("namespace", "claim"))
        asked, faults = asked_acceleration(namespace, claim, order)
        if faults:
            raise invalid(faults)
        facts = await self.data.facts(namespace, claim, asked.name)
        if facts.claim is None:
            raise not_there("claim", f"{namespace}/{claim}", "look at the list of data sets")
        chosen = chosen_acceleration(
            facts, asked, has_workers=bool(order.workers), has_quota=bool(order.quota)
        )
        found = check_acceleration(facts, chosen)
        return await self.cache(request, facts, chosen, found, acceleration_line(chosen))

    async def cache(
        self,
        request: Request,
        facts: AccelerationFacts,
        chosen: Acceleration,
        found: Sequence[Finding],
        line: str,
    ) -> PlannedWrite:
        """A data set with its cache, as an operation. `found`: all checks; `line`: the command that
        does the same.
        """
        namespace = chosen.namespace
        manifests = render_acceleration(chosen)
        failed = [fault_of(each) for each in found if each.state is State.FAIL]
        what = f"`{chosen.claim}` is not accelerated" if chosen.claim else "no data set is made"
        blocked = await self.blocked(failed, data_set_subject(namespace, chosen.name), what)
        effects = [
            Effect("create", each["kind"], namespace, each["metadata"]["name"])
            for each in manifests
        ]

        async def act() -> Written:
            return await self._started(_acceleration(facts, chosen, manifests, request, self.desk))

        return PlannedWrite(
            target=AuditTarget(DATA_SET, namespace, chosen.name),
            act=act,
            summary=f"accelerate claim {chosen.claim}" if chosen.claim else "add",
            blocked=blocked,
            effects=effects,
            preview=AccelerationPreview(
                valid=blocked is None,
                fields=list(blocked.fields) if blocked is not None else [],
                effects=effects if blocked is None else [],
                checks=shown_checks(found),
                chosen=_shown(chosen),
                line=line,
                manifests=render_manifests(manifests, has_blocks=True),
            ),
        )

    async def unaccelerate(self, request: Request) -> PlannedWrite:
        """The end of a data set, with all that Fluid made for it."""
        namespace, name = (request.path_params[key][:253] for key in ("namespace", "name"))
        found = await self._found(namespace)
        users = await self.data.users(namespace)
        more = await self.data.leftovers(namespace, name)
        parts = data_set_parts(found, namespace, name, more)
        if not parts.removed:
            raise not_there("data set", f"{namespace}/{name}", "look at the list of data sets")
        data_sets = [
            each for each in found.data_sets if (each.namespace, each.name) == (namespace, name)
        ]
        reasons = [
            FieldFault("", "in-use", why) for each in data_sets for why in blockers(each, users)
        ]
        blocked = await self.blocked(
            reasons,
            data_set_subject(namespace, name),
            f"data set `{namespace}/{name}` is in use",
        )

        async def act() -> Written:
            return await self._started(
                planned(
                    new_id(),
                    OperationKind.UNACCELERATE,
                    data_set_subject(namespace, name),
                    unacceleration_steps(parts),
                    by=_name(request),
                    now=self.desk.now(),
                )
            )

        return PlannedWrite(
            target=AuditTarget(DATA_SET, namespace, name),
            act=act,
            summary="removed, with its caches",
            blocked=blocked,
            effects=[
                Effect("delete", each.kind, each.namespace, each.name)
                for each in (*parts.removed, *parts.rest)
            ],
        )

    async def preheat(self, request: Request, order: PreheatOrder) -> PlannedWrite:
        """A reading of the data set into its cache. Raises Refused as `accelerate` does."""
        namespace, name = (request.path_params[key][:253] for key in ("namespace", "name"))
        asked, faults = asked_preheat(namespace, name, order)
        if faults:
            raise invalid(faults)
        facts = await self.data.details(namespace, name)
        data_set = data_set_of(facts.found, namespace, name)
        if data_set is None:
            raise not_there("data set", f"{namespace}/{name}", "look at the list of data sets")
        runtimes = [each for each in facts.found.runtimes if each.name == name]
        failed = [
            fault_of(each)
            for each in check_preheat(data_set, runtimes, facts.loads, asked)
            if each.state is State.FAIL
        ]
        subject = data_set_subject(namespace, name)
        blocked = await self.blocked(failed, subject, f"`{name}` is not preheated")

        async def act() -> Written:
            id = new_id()
            steps, undo = preheat_steps(render_preheat(asked, data_set, load_name(name, id)), id)
            return await self._started(
                planned(
                    id,
                    OperationKind.PREHEAT,
                    subject,
                    steps,
                    undo=undo,
                    by=_name(request),
                    now=self.desk.now(),
                )
            )

        return PlannedWrite(
            target=AuditTarget(DATA_SET, namespace, name),
            act=act,
            summary="preheat",
            blocked=blocked,
            effects=[Effect("create", "DataLoad", namespace, load_name(name, "…"))],
        )

    async def _found(self, namespace: str) -> FoundData:
        """Raises OutsideError if claims or data sets may not be read."""
        found = await self.data.within(namespace)
        if found.failures:
            hint = "the console's account needs the right to list claims and data sets"
            raise OutsideError("kubernetes", found.failures, hint)
        return found

    async def blocked(
        self, reasons: Sequence[FieldFault], subject: str, what: str
    ) -> Blocked | None:
        """`reasons`, after an operation at work on the subject; None = neither. `what`: begins the
        sentence.
        """
        at_work = await self.desk.at_work_on(subject)
        faults = list(reasons)
        if at_work is not None:
            sentence = f"operation `{at_work.id}` is at work on it: {at_work.kind}"
            faults.insert(0, FieldFault("", "operation", sentence))
        if not faults:
            return None
        why = "; ".join(each.error for each in faults)
        return Blocked(f"{what}: {why}", "correct what fails, and check again", tuple(faults))

    async def _started(self, plan: Operation) -> Written:
        made = await self.desk.start(plan)
        self.data.wrote()
        return begun_answer(made.id)


def asked_acceleration(
    namespace: str, claim: str, order: AccelerationOrder
) -> tuple[Acceleration, list[FieldFault]]:
    """The order as it is written, and what is wrong with its fields.

    >>> asked, faults = asked_acceleration("n", "raw", AccelerationOrder(quota="lots", workers=-1))
    >>> asked.name, [each.path for each in faults]
    ('raw-acc', ['workers', 'quota'])
    """
    faults = []
    folder = order.folder.strip("/")
    if folder and any(part in ("", ".", "..") for part in folder.split("/")):
        what = f"`{order.folder[:100]}` is no folder of the claim; for example `images`"
        faults.append(FieldFault("folder", "folder", what))
    quota, more = asked_cache(order)
    faults += more
    medium: Medium = "SSD" if order.medium == "SSD" else "MEM"
    name = order.name or default_name(claim)
    asked = Acceleration(namespace, claim, name, folder, max(order.workers, 0), medium, quota)
    return asked, faults


def asked_cache(order: AccelerationOrder | DataSetOrder) -> tuple[int, list[FieldFault]]:
    """The bytes of each cache, 0 = not named, and what is wrong with the fields of the cache."""
    faults = []
    if not 0 <= order.workers <= MOST_WORKERS:
        what = f"`{order.workers}` is no number of workers: 1 to {MOST_WORKERS}"
        faults.append(FieldFault("workers", "workers", what))
    if order.medium not in ("MEM", "SSD"):
        what = f"`{order.medium[:100]}` is no medium: MEM or SSD"
        faults.append(FieldFault("medium", "medium", what))
    quota = 0
    if order.quota:
        try:
            quota = parse_quantity(order.quota)
        except ValueError:
            quota = 0
        if quota <= 0:
            what = f"`{order.quota[:100]}` is no size above 0; for example `20Gi`"
            faults.append(FieldFault("quota", "quota", what))
    return quota, faults


def asked_preheat(
    namespace: str, name: str, order: PreheatOrder
) -> tuple[Preheat, list[FieldFault]]:
    """The order as it is written, and what is wrong with its fields.

    >>> asked, faults = asked_preheat("n", "d", PreheatOrder(["images"], 0, "often"))
    >>> asked.paths, [each.path for each in faults]
    (('/images',), ['replicas', 'schedule'])
    """
    faults = []
    if order.replicas < 1:
        what = f"`{order.replicas}` is no number of copies: at least 1"
        faults.append(FieldFault("replicas", "replicas", what))
    if order.schedule:
        example = "five fields, for example `0 3 * * *`"
        try:
            if "TZ=" in order.schedule:  # the API server refuses it in a CronJob
                raise ValueError("it names a time zone")
            parse_schedule(order.schedule)
        except ValueError as error:
            what = f"`{order.schedule[:100]}` is no schedule: {error}; {example}"
            faults.append(FieldFault("schedule", "schedule", what))
    paths = tuple(each if each.startswith("/") else f"/{each}" for each in order.paths) or ("/",)
    return Preheat(namespace, name, paths, order.replicas, order.schedule), faults


def acceleration_line(chosen: Acceleration) -> str:
    """The command that does the same.

    >>> acceleration_line(Acceleration("n", "raw", "raw-acc", "a b", 2, "MEM", 1 << 30))
    "fairlead dataset accelerate raw -n n --name raw-acc --sub-path 'a b' --workers 2 --quota 1Gi"
    """
    words = ["fairlead", "dataset", "accelerate", chosen.claim, "-n", chosen.namespace]
    words += ["--name", chosen.name]
    if chosen.folder:
        words += ["--sub-path", chosen.folder]
    return command_line([*words, *cache_flags(chosen)])


def cache_flags(chosen: Acceleration) -> list[str]:
    """The flags of a cache."""
    medium = ["--medium", chosen.medium] if chosen.medium != "MEM" else []
    size = render_amount(MEMORY, chosen.quota)
    return ["--workers", str(chosen.workers), *medium, "--quota", size]


def command_line(words: Sequence[str]) -> str:
    """Words for a shell."""
    return " ".join(map(_quoted, words))


def shown_checks(found: Sequence[Finding]) -> list[AccelerationCheck]:
    return [AccelerationCheck(each.check, each.state, each.sentence, each.mend) for each in found]


def _quoted(word: str) -> str:
    """One word for a shell."""
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def _acceleration(
    facts: AccelerationFacts,
    chosen: Acceleration,
    manifests: Sequence[Manifest],
    request: Request,
    desk: OperationDesk,
) -> Operation:
    id = new_id()
    steps, undo = acceleration_steps(
        manifests, id, is_begun=begun_data_set(facts, chosen) is not None
    )
    return planned(
        id,
        OperationKind.ACCELERATE,
        data_set_subject(chosen.namespace, chosen.name),
        steps,
        undo=undo,
        by=_name(request),
        now=desk.now(),
    )


def _shown(chosen: Acceleration) -> ChosenAcceleration:
    return ChosenAcceleration(
        name=chosen.name,
        folder=chosen.folder,
        workers=chosen.workers,
        medium=chosen.medium,
        quota=render_amount(MEMORY, chosen.quota),
        node=chosen.node,
    )


def fault_of(found: Finding) -> FieldFault:
    """A failed check, at its field of the form."""
    mend = f": {found.mend}" if found.mend else ""
    return FieldFault(
        _FIELD_OF.get(found.check, ""), found.check, f"{found.sentence}{mend}", found.check
    )


def _name(request: Request) -> str:
    subject = subject_of(request)
    return subject.user or subject.name
