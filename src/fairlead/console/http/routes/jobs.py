"""Answers about jobs: lists, one job, its pods, Events, YAML, logs; serving jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.job_files import instance_logs
from fairlead.console.boards.notices import warnings_beside
from fairlead.console.boards.rows import RowSet
from fairlead.console.boards.usage.past_jobs import (
    PastJob,
    past_instances,
    past_job,
    past_job_row,
    past_job_rows,
    past_jobs,
    past_jobs_sentence,
    past_life,
)
from fairlead.console.http.answers import Refused, json_answer
from fairlead.console.http.job_event_answers import Answer as EventsOrWarning
from fairlead.console.http.job_event_answers import unread_events
from fairlead.console.http.routes.console import (
    Answering,
    Console,
    from_api_server,
    job_forms,
    states_of,
    usage_ledger,
    while_allowed,
)
from fairlead.console.http.routes.rows import list_answer
from fairlead.console.http.subjects import (
    account_of,
    subject_of,
)
from fairlead.console.http.writing.job_forms import JobForms
from fairlead.console.pages.endpoints import Endpoint
from fairlead.console.pages.envelope import Envelope, Warning
from fairlead.console.pages.jobs import (
    InstanceList,
    JobDetail,
    JobEvents,
    JobList,
    JobManifest,
    JobRow,
    JobWhy,
)
from fairlead.console.pages.serving.jobs import ServingList
from fairlead.console.pages.writing.jobs import JobClone, JobForm, JobFormList
from fairlead.errors import OutsideError, UserError
from fairlead.model.actions import Manifest
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.job import Job
from fairlead.model.people.reach import reach_of
from fairlead.ports import JobFiles
from fairlead.rules.people.restricted import without_claimant
from fairlead.wire.files.manifest_yaml import render_manifests
from fairlead.wire.files.shown_manifest import shown_manifest
from fairlead.wire.usage.manifests import MOST_BYTES, parse_kept_manifest


async def jobs(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state = await states_of(console, request).latest("jobs", "jobs_sentence")
    rows, sentence = board_state.jobs, board_state.jobs_sentence
    if _asks_for_deleted(request):
        rows = await _deleted_jobs(console, request)
        sentence = past_jobs_sentence([entry.row for entry in rows.entries])
    more = {"missing_types": board_state.missing_types}
    return list_answer(request, endpoint, board_state, rows, sentence, JobList, "jobs", more)


def _asks_for_deleted(request: Request) -> bool:
    """Raises UserError for a word other than `yes` and `no`."""
    word = request.query_params.get("deleted", "")
    if word.lower() not in ("", "yes", "no"):
        raise UserError(f"`deleted` is `{word[:40]}`", "give `yes`, or `no`, which is the default")
    if word.lower() == "yes" and "at" in request.query_params:
        raise UserError("`deleted` and `at` are given", "`at` shows the jobs that existed then")
    return word.lower() == "yes"


async def _deleted_jobs(console: Console, request: Request) -> RowSet[JobRow]:
    now, reach = console.now_ms(), reach_of(subject_of(request))
    namespaces = None if reach is None else reach.namespaces
    records = await past_jobs(usage_ledger(console), now, namespaces)
    # In a thread: 400 days may have many jobs.
    return await asyncio.to_thread(past_job_rows, records, now)


async def job_types(console: Console, request: Request, endpoint: Endpoint) -> Response:
    board_state, subject = await states_of(console, request).latest(), subject_of(request)
    forms, missing = job_forms(console), set(board_state.missing_types)
    missing |= await _unserved(console, [form for form in forms.forms() if form.family != "train"])
    items = [structs.replace(form, is_served=form.type not in missing) for form in forms.forms()]
    every = board_state.snapshot.namespace_names
    names = ({"default"} if every is None else every) if subject.is_admin else subject.namespaces
    return json_answer(request, JobFormList(items, sorted(names)))


async def _unserved(console: Console, forms: Sequence[JobForm]) -> set[str]:
    """Types of these forms that the cluster does not serve; their kinds are on no board."""
    writes, kind_of = console.world.writes, job_forms(console).kind_of
    if writes is None:  # there is no API server
        return {form.type for form in forms}
    kinds = {form.type: kind for form in forms if (kind := kind_of(form.type)) is not None}
    resources = list({(kind.GROUP, kind.PLURAL) for kind in kinds.values()})
    versions = await asyncio.gather(*(writes.served(*resource) for resource in resources))
    served = dict(zip(resources, map(set, versions), strict=True))
    return {
        type_
        for type_, kind in kinds.items()
        if served[kind.GROUP, kind.PLURAL].isdisjoint(kind.CREATED_VERSIONS)
    }


async def job(console: Console, request: Request, endpoint: Endpoint) -> Response:
    return json_answer(request, await _job_with_events(console, request))


async def job_instances(console: Console, request: Request, endpoint: Endpoint) -> Response:
    _, each, found = await named_job(console, request)
    return json_answer(
        request, InstanceList(*_envelope(found), found.instances, instance_logs(each))
    )


async def job_events_of(console: Console, request: Request, endpoint: Endpoint) -> Response:
    found = await _job_with_events(console, request)
    return json_answer(request, JobEvents(*_envelope(found), found.events))


async def job_why(console: Console, request: Request, endpoint: Endpoint) -> Response:
    found = (await named_job(console, request))[2]
    return json_answer(request, JobWhy(*_envelope(found), found.job.waiting))


async def job_manifest(console: Console, request: Request, endpoint: Endpoint) -> Response:
    try:
        _, each, found = await named_job(console, request)
    except Refused as refused:
        return json_answer(request, await _past_manifest(console, request, refused))
    manifest = await _own_manifest(console, request, each.job)
    text, redacted = await asyncio.to_thread(_shown_yaml, manifest)
    return json_answer(request, JobManifest(*_envelope(found), text, redacted))


async def _past_manifest(console: Console, request: Request, refused: Refused) -> JobManifest:
    """The manifest of a deleted job, as the ledger keeps it. Refuses (404) a job without one."""
    record = (await _past_of(console, request, refused)).record
    what = f"the ledger has no manifest of {record.type} `{record.name}`"
    if not record.manifest:
        raise Refused(404, what, "a manifest is kept while a usage recorder follows the job")
    try:
        kept = parse_kept_manifest(record.manifest)
    except msgspec.MsgspecError as error:
        raise OutsideError(
            "store", f"the manifest of {record.type} `{record.name}` is damaged: {error}"
        ) from error
    if kept.manifest is None:
        hint = f"manifests of up to {MOST_BYTES >> 10} KiB are kept"
        raise Refused(404, f"{what}, which had {kept.size:,} bytes", hint)
    reach, states = reach_of(subject_of(request)), await states_of(console, request).latest()
    shown = kept.manifest if reach is None else without_claimant(kept.manifest, reach)
    text = await asyncio.to_thread(render_manifests, [shown])
    return JobManifest(*_past_envelope(states), text, kept.redacted)


async def _past_of(console: Console, request: Request, refused: Refused) -> PastJob:
    """The job in the ledger that the path names. Raises `refused` if it never had one."""
    ledger = console.ledger
    if ledger is None or refused.status != 404 or "at" in request.query_params:
        raise refused
    past = await past_job(ledger, console.now_ms(), _named(request), _uid(request))
    if past is None:
        raise refused
    return past


async def _past_detail(console: Console, request: Request, refused: Refused) -> JobDetail:
    """What the ledger has of a deleted job. Raises `refused` if it never had one."""
    past, now = await _past_of(console, request, refused), console.now_ms()
    states = await states_of(console, request).latest()
    return JobDetail(
        *_past_envelope(states),
        job=past_job_row(past.record, now, past.intervals),
        life=past_life(past.record),
        instances=past_instances(past.intervals, now),
        events=[],
    )


def _past_envelope(board_state: BoardState) -> tuple[str, bool, str, list[Warning]]:
    return board_state.generated_at, False, board_state.version("jobs"), []


async def _own_manifest(console: Console, request: Request, job: Job) -> Manifest:
    """The job's object, read as the subject, without names of other teams."""
    subject = subject_of(request)
    manifest = await _job_files(console).manifest(job, account_of(request))
    reach = reach_of(subject)
    return manifest if reach is None else without_claimant(manifest, reach)


async def job_clone(console: Console, request: Request, endpoint: Endpoint) -> Response:
    forms = job_forms(console)
    _, each, _ = await named_job(console, request)
    manifest = await _own_manifest(console, request, each.job)
    # In a thread: the objects of many flags are made.
    made = await asyncio.to_thread(_cloned, forms, each.job, manifest)
    return json_answer(request, made)


def _cloned(forms: JobForms, job: Job, manifest: Manifest) -> JobClone:
    shown, _ = shown_manifest(manifest)
    place = {"name": job.name, "namespace": job.namespace}
    whole = {"apiVersion": job.api_version, "kind": job.kind, **shown}
    return forms.cloned(job.type, {**whole, "metadata": {**(shown.get("metadata") or {}), **place}})


def _shown_yaml(manifest: Manifest) -> tuple[str, list[str]]:
    """In a thread: an object may have a megabyte,
    and the page of everybody else waits for the event loop.
    """
    shown, redacted = shown_manifest(manifest)
    return render_manifests([shown]), redacted


async def job_logs(console: Console, request: Request, endpoint: Endpoint) -> Response:
    _, each, _ = await named_job(console, request)
    files, account = _job_files(console), account_of(request)
    log = await console.logs.answer(files, each, dict(request.query_params), account)
    return while_allowed(
        console,
        request,
        endpoint,
        log,
        lambda: console.logs.may_go_on(files, each.job.namespace, account),
    )


def _named(request: Request) -> tuple[str, str, str]:
    namespace, type_, name = (
        request.path_params[key][:253] for key in ("namespace", "type", "name")
    )
    return namespace, type_, name


def _uid(request: Request) -> str:
    """The uid of the job that is asked for; "" = the newest of its name."""
    return request.query_params.get("uid", "")[:100]


async def named_job(
    console: Console, request: Request
) -> tuple[BoardState, JobInstances, JobDetail]:
    """The job that the path names. Refuses (404) a job that does not exist, or has another uid."""
    namespace, type_, name = _named(request)
    uid = _uid(request)
    board_state = await states_of(console, request).latest("instances", "explainer")
    each, found = (
        board_state.job_instances(namespace, type_, name),
        board_state.job(namespace, type_, name),
    )
    if each is None or found is None or uid not in ("", each.job.uid):
        which = f" with the uid `{uid}`" if uid else ""
        raise Refused(
            404,
            f"there is no {type_} `{name}` in namespace `{namespace}`{which}",
            "look at the list of jobs",
        )
    return board_state, each, found


async def _job_with_events(console: Console, request: Request) -> JobDetail:
    """With all that is kept of it and its pods; what is followed are warnings only.

    A deleted job is shown from the ledger.
    """
    try:
        board_state, each, found = await named_job(console, request)
    except Refused as refused:
        if "at" in request.query_params:
            raise
        return await _past_detail(console, request, refused)
    if console.world.job_files is None or "at" in request.query_params:
        return found
    events: EventsOrWarning
    try:
        events = await console.events.of(console.world.job_files, each, account_of(request))
    except Refused as refused:  # the page has more than its events
        events = unread_events(refused.what, refused.hint)
    if isinstance(events, Warning):
        return structs.replace(found, warnings=[*found.warnings, events])
    return board_state.job_with_events(each, found, events)


def _envelope(found: Envelope) -> tuple[str, bool, str, list[Warning]]:
    return found.generated_at, found.stale, found.version, found.warnings


def _job_files(console: Console) -> JobFiles:
    without = "logs and manifests are not kept"
    return from_api_server(console, console.world.job_files, without)


async def serving(console: Console, request: Request, endpoint: Endpoint) -> Response:
    servings = from_api_server(console, console.world.servings, "serving jobs are not kept")
    objects = await console.servings.of(servings)
    board_state = await states_of(console, request).latest()

    def answer() -> Response:
        rows = board_state.serving_jobs(objects)
        sentence = board_state.serving_sentence([entry.row for entry in rows.entries])
        beside = warnings_beside(objects.sources)
        return list_answer(
            request, endpoint, board_state, rows, sentence, ServingList, "serving", beside=beside
        )

    # In a thread: all pods are looked through.
    return await asyncio.to_thread(answer)


ANSWERS: Final[dict[str, Answering]] = {
    "jobs": jobs,
    "job_types": job_types,
    "job": job,
    "job_instances": job_instances,
    "job_events": job_events_of,
    "job_why": job_why,
    "job_manifest": job_manifest,
    "job_clone": job_clone,
    "job_logs": job_logs,
    "serving": serving,
}
"""By the name of their endpoint."""
