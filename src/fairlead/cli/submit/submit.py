"""What the verbs of `arena submit KIND` share: flags in, objects out, in a cluster or as YAML.
Those of `arena serve TYPE` share a part of it.

See docs/spec/arena-cli.md#objects.

Nothing is printed before everything is created, and a submit that fails half-way removes what it
made, so a person never sees half a job.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.cli.frame.context import ClusterObjects, Context, Machine
from fairlead.cli.submit.pod_faults import check_mounts, check_shares
from fairlead.errors import FairleadError, OutsideError, RejectedObject, UserError
from fairlead.model.actions import (
    CreateObject,
    DeleteObject,
    Manifest,
    Outcome,
    PatchObject,
    Result,
    object_ref,
)

if TYPE_CHECKING:
    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.kinds.serving.spec import ServingSpec
    from fairlead.kinds.serving_submission import ServingSubmission
    from fairlead.kinds.submission import AnySubmission, Served, Submission

    SpecReader = Callable[[argparse.Namespace, str, Machine], JobSpec]
    ServingSpecReader = Callable[[argparse.Namespace, str, Machine, float], ServingSpec]


class SubmitVerb(NamedTuple):
    """What a verb submits.

    `read_spec` makes the job spec of the arguments, a namespace and what the machine has.
    `needs_command`: without one the verb prints its help.
    """

    submission: Submission
    read_spec: SpecReader
    needs_command: bool = True


class ServeVerb(NamedTuple):
    """What a verb of `arena serve` creates.

    `read_spec` makes the spec of the arguments, a namespace, what the machine has and the time.
    """

    submission: ServingSubmission
    read_spec: ServingSpecReader


class SubmitMessages(NamedTuple):
    """Messages about a submitted object, with places for its `name`, `type` and `namespace`."""

    done: str
    look: str
    there_already: str
    removal: str


JOB_WORDS: Final = SubmitMessages(
    "The Job {name} has been submitted successfully",
    "You can run `arena get {name} --type {type} -n {namespace}` to check the job status",
    "the job {name} is already exist, please delete it first. use 'arena delete {name}'",
    "`arena delete {name} --type {type} -n {namespace}` removes it",
)


def submit(
    args: argparse.Namespace,
    context: Context,
    verb: SubmitVerb,
    *,
    words: SubmitMessages = JOB_WORDS,
) -> int:
    submission, read_spec, needs_command = verb
    for note in getattr(args, "deprecations", ()):
        context.messages.plain(note)
    check_text(args.words)
    named_in_file = ""
    if args.file:
        from fairlead.cli.submit.file import (
            is_job_file,
            namespace_of,
            read_documents,
            with_job_file,
        )

        documents = read_documents(args.file, context.machine)
        if not is_job_file(documents):
            return _submit_as_it_is(args, context, documents)
        args, named_in_file = (
            with_job_file(args, documents, submission.kind.TYPE),
            namespace_of(documents),
        )
    from fairlead.cli.frame.values import job_name

    job_name(args.name, may_begin_with_digit=True)  # the kind decides whether it may
    if needs_command and not args.command:
        context.stdout.write(args.parser.format_help())
        raise UserError("not found command args", "write the command after the flags, in quotes")
    namespace = context.options.namespace or named_in_file or context.world.namespace()
    spec = read_spec(args, namespace, context.machine)
    return _submit_spec(args, context, spec, submission, words)


def check_text(words: Sequence[str]) -> None:
    """Bytes that are no UTF-8 can stand on a command line and in no object."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            readable = word.encode(errors="backslashreplace").decode()
            raise UserError(
                f"`{readable}` is not UTF-8 text",
                "Kubernetes objects contain text; use --config-file for a file",
            ) from None


def _submit_spec(
    args: argparse.Namespace,
    context: Context,
    spec: JobSpec,
    submission: Submission,
    words: SubmitMessages,
) -> int:
    cluster = context.world.objects()
    if cluster is None and not args.dry_run:
        raise no_cluster()
    if args.dry_run or cluster is None:
        return print_objects(
            context, written_objects(*_as_served(args, context, cluster, spec, submission))
        )
    made = _create_unasked(cluster, spec, submission, _exists(words, spec, submission))
    if made is None:
        spec, submission, served = _as_served(args, context, cluster, spec, submission)
        objects = written_objects(spec, submission, served)
        place = next(
            place for place, each in enumerate(objects) if each["kind"] == submission.kind.KIND
        )
        made = create_all(cluster, objects, spec.namespace, _exists(words, spec, submission), place)
    context.stdout.write("".join(created_line(each) for each in made))
    context.stdout.flush()
    for sentence in (words.done, words.look):
        context.messages.info(
            sentence.format(name=spec.name, type=submission.kind.TYPE, namespace=spec.namespace)
        )
    return 0


def _exists(words: SubmitMessages, spec: JobSpec, submission: Submission) -> UserError:
    names = {"name": spec.name, "type": submission.kind.TYPE, "namespace": spec.namespace}
    return UserError(words.there_already.format(**names), words.removal.format(**names))


def written_objects(
    spec: JobSpec | ServingSpec, submission: AnySubmission, served: Served
) -> list[Manifest]:
    """The objects in the order of creation. `spec`: one of the submission's kind.

    Raises UserError for pods that no API server accepts.
    """
    from msgspec.structs import replace

    version = submission.version(served) or submission.kind.CREATED_VERSIONS[0]
    objects = submission.objects(replace(spec, user=served.user), version, served.spec_fields)
    check_shares(objects)
    check_mounts(objects)
    return objects


def _create_unasked(
    cluster: ClusterObjects, spec: JobSpec, submission: Submission, exists: UserError
) -> list[Manifest] | None:
    """What was made, as the newest operator takes it; None when this cluster does not, or when it
    must be asked in any case.
    """
    from fairlead.kinds.submission import Served

    newest = submission.kind.CREATED_VERSIONS[:1]
    if spec.priority:
        return None
    objects = written_objects(spec, submission, Served(newest, None, cluster.submitter()))
    if objects[0]["kind"] != submission.kind.KIND:
        return None
    try:
        job = _made(cluster.create_unasked(submission.kind, objects[0], spec.namespace), exists)
    except RejectedObject:
        return None
    return _with_companions(cluster, job, objects[1:], spec.namespace)


def _as_served(
    args: argparse.Namespace,
    context: Context,
    cluster: ClusterObjects | None,
    spec: JobSpec,
    submission: Submission,
) -> tuple[JobSpec, Submission, Served]:
    """The spec and submission to create, and what the cluster serves.

    A dry run needs no cluster; otherwise the kind, or the one that replaces it, must be served, and
    the priority class must exist.
    """
    from msgspec.structs import replace

    from fairlead.kinds.parts.kind import label_of
    from fairlead.kinds.submission import Served

    kind = submission.kind
    versions = submission.kind.CREATED_VERSIONS
    if cluster is None:
        return spec, submission, Served(versions[:1])
    try:
        served = cluster.served(
            kind, versions[0] if submission.kind.READS_SCHEMA else "", spec.priority
        )
        instead = submission.instead if submission.version(served) is None else None
        names = cluster.served(instead.kind, "", spec.priority) if instead is not None else served
    except OutsideError as error:
        if not args.dry_run:
            raise
        context.messages.warn(f"not checked against the cluster: {error.what}")
        return spec, submission, Served(versions[:1])
    if instead is not None and instead.version(names) is not None:
        context.messages.warn(
            f"the cluster serves no {label_of(kind)}: the {kind.TYPE} becomes an "
            f"{instead.kind.TYPE}"
        )
        _check_priority(context, spec.priority, names)
        return replace(spec, options=None), instead, names
    if submission.version(served) is None:
        missing = f"the cluster serves no {label_of(kind)} (looked for: {', '.join(versions)})"
        if not args.dry_run:
            raise UserError(missing, "install the operator of this kind of job")
        context.messages.warn(missing)
    _check_priority(context, spec.priority, served)
    _warn_of_lost_fields(context, spec, served)
    return spec, submission, served


def _check_priority(context: Context, priority: str, served: Served) -> None:
    from fairlead.cli.frame.values import invalid

    if priority and served.has_priority is False:
        raise invalid(
            f"the priority {priority} doesn't exist. Please check with `kubectl get "
            "priorityclass` to get a valid priority."
        )
    if priority and served.has_priority is None:
        context.messages.warn(
            f"it is unknown whether the priority {priority} exists: "
            "priority classes may not be read"
        )


def _warn_of_lost_fields(context: Context, spec: JobSpec, served: Served) -> None:
    if served.spec_fields is None:
        return
    asked = {
        "startingDeadlineSeconds": spec.starting_seconds is not None,
        "nprocPerNode": bool(spec.nproc_per_node),
    }
    for name, is_asked in asked.items():
        if is_asked and name not in served.spec_fields:
            context.messages.warn(
                f"the cluster's operator does not support `spec.{name}`: it is omitted"
            )


def create_all(
    cluster: ClusterObjects,
    objects: Sequence[Manifest],
    namespace: str,
    exists: UserError,
    place: int = 0,
) -> list[Manifest]:
    """Creates what the object at `place` needs, the object, and its companions, and returns what
    was made.

    Whatever goes wrong on the way, nothing stays behind.

    `exists`: the error if the object exists already.
    """
    from fairlead.kinds.parts.job_companions import owner_reference

    made: list[Manifest] = []
    main = objects[place]
    try:
        for manifest in objects[:place]:
            created = cluster.apply(CreateObject(manifest, namespace)).expect(Result.THERE).made
            if created is None:
                raise (
                    exists
                    if cluster.is_there(main, namespace)
                    else _in_the_way(manifest, main, namespace)
                )
            made.append(created)
        job = _made(cluster.apply(CreateObject(main, namespace)), exists)
        made.append(job)
        for each in made[:place]:
            cluster.apply(
                PatchObject(
                    object_ref(each), {"metadata": {"ownerReferences": [owner_reference(job)]}}
                )
            ).expect()
    except BaseException as error:
        _remove(cluster, made, error)
        raise
    return _with_companions(cluster, job, objects[place + 1 :], namespace, made)


def _made(outcome: Outcome, exists: UserError) -> Manifest:
    """The object as the cluster made it; raises why it was not made, `exists` when one of its name
    is there already.
    """
    created = outcome.expect(Result.THERE).made
    if created is None:
        raise exists
    return created


def _in_the_way(manifest: Manifest, job: Manifest, namespace: str) -> UserError:
    what = (
        f"the {_label(manifest)} {manifest['metadata']['name']} is already exist, so the job "
        f"{job['metadata']['name']} was not submitted"
    )
    return UserError(what, _removal(manifest, namespace))


def _with_companions(
    cluster: ClusterObjects,
    job: Manifest,
    companions: Sequence[Manifest],
    namespace: str,
    before: Sequence[Manifest] = (),
) -> list[Manifest]:
    """`before`: what was made until now, when that is more than the job."""
    from fairlead.kinds.parts.job_companions import owned_by

    made: list[Manifest] = list(before) or [job]
    try:
        for manifest in companions:
            outcome = cluster.apply(CreateObject(owned_by(manifest, job), namespace))
            made.append(_made(outcome, _in_the_way(manifest, job, namespace)))
    except BaseException as error:
        _remove(cluster, made, error)
        raise
    return made


def _remove(cluster: ClusterObjects, made: Sequence[Manifest], why: BaseException) -> None:
    """Newest first. What cannot be removed, either, is named in the hint of the failure."""
    for each in reversed(made):
        try:
            cluster.apply(DeleteObject(object_ref(each))).expect(Result.GONE)
        except FairleadError as error:
            left = (
                f"{_label(each)}/{each['metadata']['name']} was made and could not be removed: "
                f"{error.what}"
            )
            if isinstance(why, FairleadError):
                why.hint = f"{why.hint}; {left}" if why.hint else left


def _submit_as_it_is(
    args: argparse.Namespace, context: Context, documents: Sequence[Manifest]
) -> int:
    """`-f` with objects of Kubernetes: each is created as it stands."""
    check_shares(documents)
    if args.dry_run:
        return print_objects(context, documents)
    cluster = context.world.objects()
    if cluster is None:
        raise no_cluster()
    namespace = context.world.namespace()
    made: list[Manifest] = []
    try:
        for document in documents:
            made.append(
                _made(
                    cluster.apply(CreateObject(document, namespace)),
                    _there_already(document, namespace),
                )
            )
    except BaseException as error:
        _remove(cluster, made, error)
        raise
    context.stdout.write("".join(created_line(each) for each in made))
    return 0


def _there_already(document: Manifest, namespace: str) -> UserError:
    """Of an object of a file: a job in arena's words, anything else as what it is."""
    from fairlead.kinds.registry import KINDS

    group, name = str(document["apiVersion"]).rpartition("/")[0], document["metadata"].get("name")
    if any((group, document["kind"]) == (kind.GROUP, kind.KIND) for kind in KINDS):
        return UserError(
            f"the job {name} is already exist, please delete it first. use 'arena delete {name}'"
        )
    return UserError(
        f"the {_label(document)} {name} is already exist, so nothing of the file was created",
        _removal(document, namespace),
    )


def _removal(manifest: Manifest, namespace: str) -> str:
    """The command that removes the existing object."""
    meta = manifest["metadata"]
    return (
        f"`kubectl delete {_label(manifest)}/{meta['name']} -n "
        f"{meta.get('namespace') or namespace}` removes it"
    )


def print_objects(context: Context, objects: Sequence[Manifest]) -> int:
    from fairlead.wire.files.manifest_yaml import render_manifests

    context.stdout.write(render_manifests(objects))
    return 0


def created_line(created: Manifest) -> str:
    return f"{_label(created)}/{created['metadata']['name']} created\n"


def _label(manifest: Manifest) -> str:
    """`mpijob.kubeflow.org`, `configmap`: as kubectl names an object."""
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    kind = str(manifest["kind"]).lower()
    return f"{kind}.{group}" if group else kind


def no_cluster() -> UserError:
    return UserError(
        "there is no cluster to submit to",
        (
            "`fairlead up` starts one on this machine, --kubeconfig FILE names another, --dry-run "
            "prints the objects"
        ),
    )
