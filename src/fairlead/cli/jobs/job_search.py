"""Finds the jobs that a command means, and warns of what could not be seen.

See docs/spec/arena-cli.md#partial-results.

All job verbs use it.

A kind that may not be read is left out with a warning, but a table that is empty because *nothing*
could be read is an error, never an empty table.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.cli.frame.object_names import (
    absence_of,
    check_name,
    in_namespace,
    is_open,
    other_users_job,
)
from fairlead.errors import FairleadError, OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.cli.frame.context import ClusterJobs, Context
    from fairlead.cli.frame.messages import Messages
    from fairlead.kinds.parts.kind import JobKind
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.model.source import Source
    from fairlead.rules.reports.job import JobReport

NOT_FOUND = "training job not found,please use 'arena list' to make sure job is existed"
LIST_ALL_HINT = "`arena list -A` shows every namespace"


def add_type(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--type",
        "-T",
        metavar="TYPE",
        default="",
        help="only jobs of this type, e.g. mpijob, tfjob, pytorchjob",
    )


def kinds_of(word: str) -> tuple[JobKind, ...]:
    """The kinds that `-T word` means: all without a word, none
    for a type that we cannot read yet.
    """
    from fairlead.kinds.registry import KINDS, TYPE_WORDS, kind_by_type, type_of_word

    if not word:
        return KINDS
    type_ = type_of_word(word)
    if type_ is None:
        types = ",".join(f"{short}({long})" for long, short in TYPE_WORDS.values())
        raise UserError(
            f"unsupport job type,arena only supports: [{types}]",
            "without `-T` jobs of all types are searched",
        )
    kind = kind_by_type(type_)
    return (kind,) if kind is not None else ()


def check_sources(
    found: ClusterSnapshot, kinds: Sequence[JobKind], word: str, namespace: str, messages: Messages
) -> bool:
    """Warn of what was left out; whether that was anything. Raises if nothing could be read."""
    labels = _labels(kinds)
    read = {labels[name]: source for name, source in found.sources.items() if name in labels}
    served = {name: source for name, source in read.items() if not source.is_missing}
    for name in sorted(read.keys() - served.keys()):
        messages.debug(f"{name} is not served by this cluster")
    if not served:
        looked_for = ", ".join(sorted(labels.values())) or word
        messages.warn(f"no training job kind is served by this cluster (looked for: {looked_for})")
        return False
    failed = {name: source for name, source in served.items() if not source.is_ok}
    if len(failed) == len(served):
        raise _nothing_read(failed, namespace)
    if "pods" in found.sources and not found.sources["pods"].is_ok:
        failed["pods"] = found.sources["pods"]
    for name, source in failed.items():
        messages.warn(f"skipped {name}: {source.message}")
    return bool(failed)


def _nothing_read(failed: Mapping[str, Source], namespace: str) -> FairleadError:
    first = next(iter(failed.values()))
    if all(source.is_forbidden for source in failed.values()):
        return UserError(
            f"the user has no privileges to list the training jobs in {in_namespace(namespace)}",
            first.message,
        )
    return OutsideError("kubernetes", f"no training job can be listed: {first.message}", first.hint)


def find_job(
    jobs: ClusterJobs,
    name: str,
    namespace: str,
    word: str,
    *,
    absent: str = NOT_FOUND,
    with_readings: bool = False,
) -> ClusterSnapshot:
    """The one job of this name with its pods.

    Raises UserError for none, or one in several kinds.
    """
    check_name(name)
    kinds = kinds_of(word)
    found = without_others_jobs(
        jobs.read_jobs(kinds, namespace, name, with_readings=with_readings), name
    )
    if len(found.jobs) == 1:
        return found
    if found.jobs:
        raise UserError(
            (
                f"there are more than 1 training jobs with the same name {name}, please check it "
                f"with `arena list | grep {name}` "
            ),
            f"`-T {found.jobs[0].type}` or `-T {found.jobs[1].type}` selects one",
        )
    labels = _labels(kinds) | {"pods": "pods"}
    failed = [
        source for name, source in found.sources.items() if name in labels and source.has_failed
    ]
    if failed:
        raise OutsideError(
            "kubernetes",
            f"{absent} ({labels[failed[0].name]}: {failed[0].message})",
            failed[0].hint,
        )
    raise UserError(absent, absence_of(namespace) if jobs.is_absent(namespace) else LIST_ALL_HINT)


def _labels(kinds: Sequence[JobKind]) -> dict[str, str]:
    """By the name of each kind's source, what people call it."""
    from fairlead.kinds.parts.kind import label_of, source_of

    return {source_of(kind): label_of(kind) for kind in kinds}


def without_others_jobs(found: ClusterSnapshot, name: str = "") -> ClusterSnapshot:
    """Where a namespace shows people their own jobs only, the others' are left out; one that was
    asked for by name is refused.
    """
    mine = tuple(
        job for job in found.jobs if is_open(job.labels, found.isolated.get(job.namespace))
    )
    if name and found.jobs and not mine:
        raise other_users_job(found.jobs[0].namespace)
    if len(mine) == len(found.jobs):
        return found
    from msgspec.structs import replace

    return replace(found, jobs=mine)


def report_of(found: ClusterSnapshot) -> list[JobReport]:
    """As of the moment when the cluster was read: a saved snapshot does not age."""
    from fairlead.kinds.instances import all_instances
    from fairlead.rules.reports.job import report_jobs

    mine = without_others_jobs(found)
    return report_jobs(all_instances(mine), mine.taken_at, mine.gpus)


def warn_of_pods(found: ClusterSnapshot, messages: Messages) -> None:
    """A job without pods must not look like one that has none."""
    pods = found.sources.get("pods")
    if pods is not None and not pods.is_ok:
        messages.warn(f"skipped pods: {pods.message}")


def warn_of_readings(
    found: ClusterSnapshot, reports: Sequence[JobReport], messages: Messages
) -> None:
    """Warns once if pods hold GPUs without readings."""
    from fairlead.model.snapshot import GPU_TELEMETRY
    from fairlead.rules.pods.devices import has_gpu

    holders = [
        each.pod
        for report in reports
        for each in report.instances
        if each.pod.is_holding and has_gpu(each.pod)
    ]
    if holders and not found.gpus:
        source = found.sources.get(GPU_TELEMETRY)
        messages.warn(f"GPU metrics unavailable: {(source and source.message) or 'no samples'}")


def is_legacy(args: argparse.Namespace, context: Context) -> bool:
    """The layout of arena 0.4: by flag, else by ARENA_OUTPUT,
    else by the config file's `output=legacy`.
    """
    from fairlead.cli.frame.arena_config import is_legacy_layout

    return args.legacy or is_legacy_layout(context.env, context.machine, context.messages)
