"""Before the files of a data set are read into its cache: checks, the name of the DataLoad, and how
far it is.

Specification: docs/spec/datasets.md#preheat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from fairlead.model.actions import Manifest
from fairlead.model.installed.finding import Finding, State
from fairlead.model.jobs.data_details import DataLoad, Preheat
from fairlead.model.jobs.datasets import DataRuntime, DataSet

MOST_LOAD_NAME: Final = 46
"""Letters of a DataLoad's name: the Helm release `NAME-loader` may have 53."""
LOADING_KINDS: Final = ("AlluxioRuntime", "JindoRuntime", "JuiceFSRuntime", "GooseFSRuntime")
"""Runtimes for which Fluid 1.0.8 has a chart of DataLoads."""
_PATH: Final = re.compile(r"/[\w./@%+=,-]*")
"""What Fluid's script, which splits the paths at blanks and colons, leaves whole."""
_AMOUNT: Final = re.compile(r"\d+(\.\d+)?[KMGTPE]?i?B", re.ASCII)


def load_name(data_set: str, operation: str) -> str:
    """The name of the DataLoad of an operation, legal however long the data set's name is.

    >>> load_name("raw-acc", "a1b2c3d4e5f6"), len(load_name("a" * 45, "a1b2c3d4e5f6"))
    ('raw-acc-a1b2c3d4e5f6', 46)
    """
    return f"{data_set[: MOST_LOAD_NAME - len(operation) - 1].rstrip('-')}-{operation}"


def check_preheat(
    data_set: DataSet,
    runtimes: Sequence[DataRuntime],
    loads: Sequence[DataLoad] | None,
    chosen: Preheat,
) -> list[Finding]:
    """All checks. `runtimes`: of the data set's name. `loads`: of its namespace; None = they may
    not be read.
    """
    return [
        _bound(data_set),
        _runtime(data_set, runtimes),
        _alone(data_set, loads, chosen),
        *_paths(chosen),
        _copies(runtimes, chosen),
    ]


def _bound(data_set: DataSet) -> Finding:
    if data_set.is_ready:
        return Finding("bound", State.OK, "the data set is Bound")
    phase = "being deleted" if data_set.is_ending else data_set.phase or "Pending"
    mend = f"`fairlead dataset show {data_set.name}` shows the reason"
    return Finding("bound", State.FAIL, f"`{data_set.name}` is {phase}", mend)


def _runtime(data_set: DataSet, runtimes: Sequence[DataRuntime]) -> Finding:
    kinds = [each.kind for each in runtimes]
    if len(kinds) != 1:
        found = "no runtime has" if not kinds else f"{len(kinds)} runtimes have"
        return Finding(
            "runtime",
            State.FAIL,
            f"{found} the name `{data_set.name}`",
            f"`fairlead dataset show {data_set.name}` shows them; exactly one caches its files",
        )
    if kinds[0] not in LOADING_KINDS:
        mend = f"Fluid preheats data sets of {', '.join(LOADING_KINDS)}"
        return Finding("runtime", State.FAIL, f"a {kinds[0]} cannot preheat", mend)
    return Finding("runtime", State.OK, f"a {kinds[0]} caches it")


def _alone(data_set: DataSet, loads: Sequence[DataLoad] | None, chosen: Preheat) -> Finding:
    its = [each for each in loads or () if each.data_set == data_set.name]
    planned = [each for each in its if each.schedule]
    running = [each.name for each in its if not each.schedule and not each.is_ended]
    busy = {name.partition(" ")[2]: name for name in data_set.operations}
    held = [each for each in planned if each.name in busy]
    running += [name for short, name in busy.items() if short not in running]
    if held and (chosen.schedule or running == [busy[held[0].name]]):
        first = held[0]
        return Finding(
            "one-at-a-time",
            State.FAIL,
            f"the schedule `{first.schedule}` of `{first.name}` holds `{data_set.name}`: for Fluid "
            "it runs until its first run has ended",
            f"delete it first: `kubectl -n {first.namespace} delete dataload {first.name}`",
        )
    if running:
        return Finding(
            "one-at-a-time",
            State.FAIL,
            f"an operation of Fluid runs on `{data_set.name}`: `{running[0]}`",
            "wait until it has ended: `fairlead operation list` shows those of Fairlead",
        )
    if chosen.schedule and planned:
        first = planned[0]
        return Finding(
            "one-at-a-time",
            State.FAIL,
            f"`{data_set.name}` is preheated by the schedule `{first.schedule}` already",
            f"delete it first: `kubectl -n {first.namespace} delete dataload {first.name}`",
        )
    if loads is None:
        sentence = "DataLoads may not be read; the data set reports no operation of Fluid"
        return Finding("one-at-a-time", State.UNKNOWN, sentence)
    return Finding("one-at-a-time", State.OK, "no operation of Fluid runs on it")


def _paths(chosen: Preheat) -> Iterator[Finding]:
    bad = [each for each in chosen.paths if not _PATH.fullmatch(each) or ".." in each.split("/")]
    mend = "a path in the data set, as `/images`, without blanks, `:` and `..`"
    if bad:
        yield Finding("paths", State.FAIL, f"`{bad[0]}` is no path that Fluid can load", mend)
    else:
        yield Finding(
            "paths", State.OK, f"it reads {', '.join(f'`{each}`' for each in chosen.paths)}"
        )


def _copies(runtimes: Sequence[DataRuntime], chosen: Preheat) -> Finding:
    workers = max((each.wanted for each in runtimes), default=0)
    if chosen.replicas > workers:
        return Finding(
            "replicas",
            State.FAIL,
            f"{chosen.replicas} copies need as many workers; there are {workers}",
            f"fewer --replicas, or `fairlead dataset scale {chosen.data_set} "
            f"--workers {chosen.replicas}`",
        )
    return Finding("replicas", State.OK, f"{workers} workers keep {chosen.replicas} copies")


def load_progress(data_set: Manifest | None) -> str:
    """What is cached of the data set, in Fluid's own words; "" while Fluid does not report it.

    A DataLoad reports no progress of its own.

    >>> load_progress({"status": {"ufsTotal": "2.00GiB", "cacheStates": {"cached": "1.00GiB"}}})
    '1.00GiB of 2.00GiB cached'
    >>> load_progress({"status": {"ufsTotal": "[Calculating]", "cacheStates": {"cached": "0B"}}})
    '0B cached'
    """
    status: Any = (data_set or {}).get("status") or {}
    cached = str((status.get("cacheStates") or {}).get("cached") or "")
    total = str(status.get("ufsTotal") or "")
    if not _AMOUNT.fullmatch(cached):
        return ""
    return f"{cached} of {total} cached" if _AMOUNT.fullmatch(total) else f"{cached} cached"
