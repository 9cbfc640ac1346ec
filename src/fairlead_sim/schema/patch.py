"""The three patch dialects of the API: what an object becomes under each.

JSON merge patch (RFC 7386), JSON patch (RFC 6902), and Kubernetes' strategic merge, which merges
lists of objects by a key instead of replacing them. Nothing here changes its arguments: unchanged
parts are shared with the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from fairlead.wire.kube.fields import Field, fields_by_name
from fairlead_sim.schema.go_json import go_type, go_value
from fairlead_sim.schema.go_number import whole_or_none
from fairlead_sim.schema.status import ApiStatus, bad_request

COPIED_BYTES_MAX: Final = 3 * 1024 * 1024
"""Bytes that `copy` operations of a JSON patch may add.

kube-apiserver's `JSONPatchMaxCopyBytes`.
"""


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces.

    >>> apply_merge_patch({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), value)
    return merged


# --- strategic merge ------------------------------------------------------------------------------


def apply_strategic_patch(target: Any, patch: Any, message: str | None) -> Any:
    """Kubernetes' strategic merge with its directives (`$patch`, `$retainKeys`, …).

    `message` (of `schema.fields`) defines which lists are merged by which key; all others are
    replaced.

    >>> pod = {"containers": [{"name": "a"}, {"name": "b"}]}
    >>> patch = {"containers": [{"name": "a", "tty": True}]}
    >>> apply_strategic_patch(pod, patch, "core.PodSpec")
    {'containers': [{'name': 'a', 'tty': True}, {'name': 'b'}]}
    """
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch", "replace") not in ("replace", "delete", "merge"):
        raise ApiStatus(500, "", f"unknown patch type: {patch['$patch']} in map: {go_value(patch)}")
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    held, fields = target if isinstance(target, dict) else {}, fields_by_name(message)
    merged = dict(held)
    if "$retainKeys" in patch:
        merged = {key: value for key, value in merged.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.partition("/")[2]
            merged[field] = [item for item in merged.get(field) or () if item not in value]
        elif not key.startswith("$"):
            _merge_field(merged, key, value, fields.get(key, _UNKNOWN))
    for key, value in patch.items():
        if key.startswith("$setElementOrder/"):
            field = key.partition("/")[2]
            if not isinstance(value, list):
                raise ApiStatus(
                    500, "", f"expected a []interface {{}}, but received a {go_type(value)}"
                )
            if merged.get(field):
                merge_key = fields.get(field, _UNKNOWN).merge_key
                _check_order(value, patch.get(field), merge_key)
                merged[field] = _in_order(merged[field], value, held.get(field) or (), merge_key)
    return merged


_UNKNOWN = Field("", "", "", False, False, None)


def _merge_field(merged: dict[str, Any], key: str, value: Any, field: Field) -> None:
    if value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
        merged.pop(key, None)
    elif isinstance(value, list):
        merged[key] = _merge_list(merged.get(key) or [], value, field)
    else:
        merged[key] = apply_strategic_patch(merged.get(key), value, field.message)


def _merge_list(target: list[Any], patch: list[Any], field: Field) -> list[Any]:
    key = field.merge_key
    if key is None or any(
        isinstance(item, dict) and item.get("$patch") == "replace" for item in patch
    ):
        return [
            item
            for item in patch
            if not (isinstance(item, dict) and item.get("$patch") == "replace")
        ]
    if key == "":
        return _in_order(
            [*target, *(item for item in patch if item not in target)], patch, target, key
        )
    merged, left = list(target), []
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise _without_key(item, key)
        found = next(
            (
                index
                for index, held in enumerate(merged)
                if isinstance(held, dict) and held.get(key) == item[key]
            ),
            None,
        )
        if item.get("$patch") == "delete":
            merged = [held for held in merged if held.get(key) != item[key]]
            continue
        left.append(item)
        if found is None:
            merged.append(apply_strategic_patch({}, item, field.message))
        else:
            merged[found] = apply_strategic_patch(merged[found], item, field.message)
    return _in_order(merged, left, target, key)


def _check_order(order: list[Any], patch: Any, key: str | None) -> None:
    """Every item of an order has its key, and those of the patch stand in it, in that order."""
    for item in order if key else ():
        if isinstance(item, dict) and key not in item:
            raise _without_key(item, key)
    named = (
        [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
        if isinstance(patch, list)
        else []
    )
    left = iter([_identity(item, key) for item in order])
    if order and not all(_identity(item, key) in left for item in named):
        detail = (
            f"The order in patch list:\n{go_value(patch)}\n doesn't match $setElementOrder "
            f"list:\n{go_value(order)}\n"
        )
        raise ApiStatus(500, "", detail)


def _without_key(item: Any, key: str | None) -> ApiStatus:
    return ApiStatus(500, "", f"map: {go_value(item)} does not contain declared merge key: {key}")


def _in_order(
    items: list[Any], order: Iterable[Any], before: Iterable[Any], key: str | None
) -> list[Any]:
    """The items named by `order` in its order; each of the others keeps its place before those that
    it stood `before`, and else follows.

    Whatever is new therefore comes first, as on the real server: a sidecar stands in front of what
    it is added to.

    >>> _in_order(["a", "b", "new"], ["new"], ["a", "b"], "")
    ['new', 'a', 'b']
    >>> _in_order(["a", "b", "c"], ["c", "b"], ["a", "b", "c"], "")
    ['a', 'c', 'b']
    """
    places, old_places = _places(order, key), _places(before, key)
    named = sorted(
        (item for item in items if _identity(item, key) in places),
        key=lambda item: places[_identity(item, key)],
    )
    others = [item for item in items if _identity(item, key) not in places]
    merged: list[Any] = []
    for item in named:
        place = old_places.get(_identity(item, key), -1)
        while others and old_places.get(_identity(others[0], key), place) < place:
            merged.append(others.pop(0))
        merged.append(item)
    return [*merged, *others]


def _places(items: Iterable[Any], key: str | None) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, item in enumerate(items):
        places.setdefault(_identity(item, key), place)
    return places


def _identity(item: Any, key: str | None) -> str:
    # of any type that a client sends
    return repr(item.get(key) if key and isinstance(item, dict) else item)


# --- JSON patch -----------------------------------------------------------------------------------


def apply_json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902, including `test`. Raises 422 when an operation does not apply, 400 when it is none.

    >>> test = {"op": "test", "path": "/a/0", "value": 1}
    >>> add = {"op": "add", "path": "/a/-", "value": 3}
    >>> apply_json_patch({"a": [1, 2]}, [test, add])
    {'a': [1, 2, 3]}
    """
    if operations is not None and not isinstance(operations, list):
        raise _no_operation(operations, "[]handlers.jsonPatchOp")
    copied = 0
    for operation in operations or ():
        if not isinstance(operation, dict):
            raise _no_operation(operation, "handlers.jsonPatchOp")
        if not isinstance(operation.get("path"), str):
            raise _rejected()
        if operation.get("op") == "copy":
            copied += _size(_found(target, _pointer(str(operation.get("from", "")))))
            if copied > COPIED_BYTES_MAX:
                raise _rejected()
        target = _apply_operation(target, operation)
    return target


def _size(value: Any) -> int:
    """Bytes of compact JSON, which is what the real server counts."""
    return len(msgspec.json.encode(value))


def _no_operation(found: Any, wanted: str) -> ApiStatus:
    return bad_request(
        f"error decoding patch: json: cannot unmarshal {go_type(found)} into Go value of type "
        f"{wanted}"
    )


def _apply_operation(target: Any, operation: dict[str, Any]) -> Any:
    kind, path = operation.get("op"), _pointer(operation["path"])
    if kind == "test":
        if _found(target, path) != operation.get("value"):
            raise _rejected()
        return target
    if kind == "add":
        return _with_value(target, path, operation.get("value"), insert=True)
    if kind == "replace":
        _found(target, path)
        return _with_value(target, path, operation.get("value"), insert=False)
    if kind == "remove":
        return _without(target, path)
    if kind in ("move", "copy"):
        source = _pointer(str(operation.get("from", "")))
        value = _found(target, source)
        return _with_value(
            _without(target, source) if kind == "move" else target, path, value, insert=True
        )
    raise _rejected()


def _rejected() -> ApiStatus:
    """The real server's whole message about an operation that does not apply."""
    return ApiStatus(
        422, "Invalid", "the server rejected our request due to an error in our request"
    )


def _pointer(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _index(items: list[Any], step: str, end: int) -> int:
    index = whole_or_none(step)
    if index is None or not 0 <= index < end:
        raise _rejected()
    return index


def _lookup(target: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(target, list):
            target = target[_index(target, step, len(target))]
        elif isinstance(target, dict) and step in target:
            target = target[step]
        else:
            raise _rejected()
    return target


def _found(target: Any, path: list[str]) -> Any:
    """The value at a path; None for a field that its object does not have: the real server tests,
    replaces and copies those, too.
    """
    if not path:
        return target
    parent = _lookup(target, path[:-1])
    return (
        _lookup(parent, path[-1:]) if not isinstance(parent, dict) or path[-1] in parent else None
    )


def _with_value(target: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(target, dict):
        if rest and step not in target:
            raise _rejected()
        return {**target, step: _with_value(target.get(step), rest, value, insert=insert)}
    if not isinstance(target, list):
        raise _rejected()
    if rest or not insert:
        index = _index(target, step, len(target))
        return [
            *target[:index],
            _with_value(target[index], rest, value, insert=insert),
            *target[index + 1 :],
        ]
    index = len(target) if step == "-" else _index(target, step, len(target) + 1)
    return [*target[:index], value, *target[index:]]


def _without(target: Any, path: list[str]) -> Any:
    if not path:
        raise _rejected()
    step, rest = path[0], path[1:]
    if isinstance(target, list):
        index = _index(target, step, len(target))
        return [
            *target[:index],
            *([_without(target[index], rest)] if rest else []),
            *target[index + 1 :],
        ]
    if not isinstance(target, dict) or step not in target:
        raise _rejected()
    if rest:
        return {**target, step: _without(target[step], rest)}
    return {key: held for key, held in target.items() if key != step}
