"""Whether values of a chart have the types that its catalogue entry names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlead.model.operations.component import Component

_WANTED: Final = {
    "text": "a text",
    "number": "a whole number",
    "boolean": "true or false",
    "list": "a list",
    "mapping": "a mapping",
}


def value_faults(component: Component, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each with what mends it. Values that the entry does not name are the chart's to check.

    >>> from fairlead.rules.components.catalogue import component_of
    >>> list(value_faults(component_of("fluid"), {"dataset": {"replicas": "many"}}))
    [('value `dataset.replicas` is `many`', 'give a whole number')]
    """
    for _, fault, mend in named_value_faults(component, values):
        yield fault, mend


def named_value_faults(
    component: Component, values: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """As `value_faults`, each with the name of the value."""
    for each in component.values:
        found = _at(values, each.name)
        if found is not None and not _is_of(each.type, found):
            yield each.name, f"value `{each.name}` is `{found}`", f"give {_WANTED[each.type]}"


def nested(name: str, value: Any) -> dict[str, Any]:
    """The value as a mapping.

    >>> nested("csi.enabled", True)
    {'csi': {'enabled': True}}
    """
    first, dot, rest = name.partition(".")
    return {first: nested(rest, value) if dot else value}


def _at(values: Any, name: str) -> Any:
    for word in name.split("."):
        values = values.get(word) if isinstance(values, Mapping) else None
    return values


def _is_of(type_: str, value: Any) -> bool:
    if type_ == "boolean":
        return isinstance(value, bool)
    if type_ == "number":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if type_ in ("list", "mapping"):
        return isinstance(value, list if type_ == "list" else Mapping)
    return isinstance(value, str)
