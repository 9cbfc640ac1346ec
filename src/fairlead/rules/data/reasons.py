"""Why a data set does not begin, or does not end.

Specification: docs/spec/datasets.md#reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.model.jobs.data_details import DataReasons
from fairlead.model.jobs.datasets import DataRuntime, DataSet, stuck_since
from fairlead.model.moment import Moment
from fairlead.rules.data.acceleration import blockers

FOREIGN_CLAIM: Final = "Bound, but its claim is not Fluid's"
_DATASET_CONTROLLER: Final = "dataset-controller"
_NAMESPACE: Final = "fluid-system"
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"))


def reason_of(
    data_set: DataSet,
    runtimes: Sequence[DataRuntime],
    *,
    has_foreign_claim: bool,
    known: DataReasons,
    now: Moment,
) -> str:
    """One line; "" if nothing is wrong. `runtimes`: of its name. `has_foreign_claim`: Fluid has not
    made the claim of its name.
    """
    if data_set.is_ready:
        faults = [FOREIGN_CLAIM] if has_foreign_claim else []
        return "; ".join([*faults, *_several(runtimes)])
    is_stuck = data_set.is_stuck(now)
    if data_set.is_ending:
        if not is_stuck:
            return "it is being deleted"
        whys = [*_ends(data_set, runtimes, known)]
        begin = "Terminating"
    else:
        whys = [*_begins(data_set, runtimes, known if is_stuck else DataReasons())]
        begin = "not Bound"
        if not is_stuck:
            return whys[0] if whys else ""
    if has_foreign_claim:
        whys.append(f"the claim `{data_set.name}` is not Fluid's")
    since = stuck_since(data_set)
    length = f" for {_length(now - since)}" if since else ""
    return f"{begin}{length}: {'; '.join(whys) or 'Fluid reports no reason'}"


def _begins(
    data_set: DataSet, runtimes: Sequence[DataRuntime], known: DataReasons
) -> Iterator[str]:
    if data_set.message:
        yield data_set.message
    if not runtimes:
        yield "no runtime has its name"
    yield from _several(runtimes)
    yield from _controllers(runtimes, known)
    for runtime in runtimes:
        for part in runtime.parts:
            if part.reason and part.phase not in ("Ready", ""):
                yield f"{part.name} {part.phase}: {part.reason}"


def _ends(data_set: DataSet, runtimes: Sequence[DataRuntime], known: DataReasons) -> Iterator[str]:
    users = [each for each in known.users or () if each.namespace == data_set.namespace]
    yield from blockers(data_set, users)
    yield from _controllers(runtimes, known)
    if data_set.finalizers:
        names = ", ".join(f"`{each}`" for each in data_set.finalizers)
        yield f"finalizers that only Fluid may remove: {names}"


def _several(runtimes: Sequence[DataRuntime]) -> list[str]:
    if len(runtimes) < 2:
        return []
    kinds = ", ".join(each.kind for each in runtimes)
    return [f"{len(runtimes)} runtimes have its name: {kinds}"]


def _controllers(runtimes: Sequence[DataRuntime], known: DataReasons) -> Iterator[str]:
    if known.controllers is None:
        return
    states = {each.name: each for each in known.controllers}
    for name in (_DATASET_CONTROLLER, *(f"{each.kind.lower()}-controller" for each in runtimes)):
        state = states.get(name)
        if state is None:
            yield f"there is no Deployment `{name}` in `{_NAMESPACE}`"
        elif not state.ready:
            yield f"`{name}` in `{_NAMESPACE}` is not ready (0 of {state.wanted})"


def _length(seconds: float) -> str:
    """
    >>> _length(300), _length(86400 * 3)
    ('5 min', '3 d')
    """
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{int(seconds // size)} {unit}"
