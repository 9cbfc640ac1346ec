"""Whether an older version may take an installation over: what it would not understand, or lose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fairlead.model.actions import Manifest, ObjectRef, object_ref
from fairlead.model.refusal import Refusal
from fairlead.rules.installation.finding_lists import some

_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata", "status")
_SHOWN = 5


def is_older(version: str, than: str) -> bool:
    """Whether a version is older than another. A word after the numbers does not count.

    >>> is_older("0.9.1", "0.10.0"), is_older("0.10.0", "0.10.0-rc1")
    (True, False)
    """
    return _numbers(version) < _numbers(than)


def refuse_older(installed: str, offered: str) -> Refusal | None:
    """The refusal to go back without being asked to.

    >>> refuse_older("0.10.0", "0.9.1").reason
    'version `0.10.0` is installed, and `0.9.1` is older'
    """
    if not is_older(offered, installed):
        return None
    return Refusal(f"version `{installed}` is installed, and `{offered}` is older")


def refuse_too_old(installed: str, offered: str, oldest: str) -> Refusal | None:
    """The refusal of a version that does not understand what the installed one has written.

    `oldest`: the oldest version that does, as the inventory has it.

    >>> refuse_too_old("0.4.0", "0.2.0", "0.3.0").reason
    'version `0.2.0` does not understand what `0.4.0` has written; `0.3.0` and later do'
    """
    if not is_older(offered, oldest):
        return None
    return Refusal(
        f"version `{offered}` does not understand what `{installed}` has written; "
        f"`{oldest}` and later do"
    )


def refuse_loss(definition: Manifest, objects: Sequence[Manifest]) -> Refusal | None:
    """The refusal to write a definition whose schema lacks fields of existing objects.

    The API server would drop these fields at the next write of the object.
    """
    lost = [
        f"{object_ref(each).title}: {path}"
        for each in objects
        for path in lost_fields(each, _stored(definition)["schema"]["openAPIV3Schema"])
    ]
    if not lost:
        return None
    name = definition["metadata"]["name"]
    return Refusal(
        f"definition `{name}` of this version lacks fields that objects have: "
        f"{some(lost, most=_SHOWN)}"
    )


def kind_of(definition: Manifest) -> ObjectRef:
    """The kind that a definition defines, in the version that it stores."""
    spec = definition["spec"]
    return ObjectRef(f"{spec['group']}/{_stored(definition)['name']}", spec["names"]["kind"], "")


def lost_fields(obj: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Paths of fields that the schema does not have. Fields of every object, and the status, which
    controllers write anew, do not count.

    >>> spec = {"type": "object", "properties": {"a": {"type": "integer"}}}
    >>> lost_fields({"kind": "K", "spec": {"a": 1, "b": 2}}, {"properties": {"spec": spec}})
    ['.spec.b']
    """
    counted = {key: value for key, value in obj.items() if key not in _OF_EVERY_OBJECT}
    return list(_lost(counted, schema, ""))


def _lost(value: object, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _lost(each, schema.get("items", {}), f"{path}[{number}]")
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for key, each in value.items():
            if key in known:
                yield from _lost(each, known[key], f"{path}.{key}")
            elif isinstance(others, dict):
                yield from _lost(each, others, f"{path}.{key}")
            elif not others:
                yield f"{path}.{key}"


def _stored(definition: Manifest) -> Mapping[str, Any]:
    versions: Iterable[Mapping[str, Any]] = definition["spec"]["versions"]
    return next(each for each in versions if each["storage"])


def _numbers(version: str) -> tuple[int, ...]:
    head = version.partition("-")[0].partition("+")[0]
    return tuple(int(word) for word in head.split(".") if word.isdigit())
