"""The data set that a person names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.jobs.datasets import DataSet, FoundData

_LIST = "`fairlead dataset list` shows the data sets"


def named_data_set(found: FoundData, namespace: str, name: str) -> DataSet:
    """Raises UserError, with what else has the name, if there is no such data set."""
    if found.failures:
        raise UserError(found.failures, "use a user who may list claims and data sets there")
    named = [each for each in found.data_sets if (each.namespace, each.name) == (namespace, name)]
    if named:
        return named[0]
    if not found.has_fluid:
        raise UserError(
            f"there is no data set `{namespace}/{name}`: Fluid is not installed",
            "install Fluid: https://fluid-cloudnative.io",
        )
    raise UserError(f"there is no data set `{namespace}/{name}`", _hint(found, namespace, name))


def _hint(found: FoundData, namespace: str, name: str) -> str:
    kinds = [
        each.kind for each in found.runtimes if (each.namespace, each.name) == (namespace, name)
    ]
    if kinds:
        kind = kinds[0]
        return f"a {kind} of this name is left: `fairlead dataset unaccelerate {name}` removes it"
    if any((each.namespace, each.name) == (namespace, name) for each in found.claims):
        return f"`{name}` is a claim; name the data set that mounts it: {_LIST}"
    return _LIST
