"""Label and field selectors, as predicates on objects.

Both come as one string in the query (`app=web,tier in (a,b),!old` and `spec.nodeName=n1`); a parsed
one is a predicate on objects. A label that is absent satisfies `!=` and `notin`, as in Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from fairlead_sim.schema.names import label_value_faults, qualified_name_faults
from fairlead_sim.schema.status import bad_request

Labels = Mapping[str, str]
Predicate = Callable[[Mapping[str, Any]], bool]
_Test = Callable[[Labels], bool]

_TOKEN = re.compile(r"(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")


def parse_label_selector(text: str) -> Predicate:
    """A predicate on whole objects. Raises 400 with the place where the text stops to make sense.

    >>> chooses = parse_label_selector("app in (a, b),!old")
    >>> chooses({"metadata": {"labels": {"app": "b"}}})
    True
    >>> chooses({"metadata": {"labels": {"app": "b", "old": ""}}})
    False
    """
    tests = _LabelParser(text).parse()
    return lambda obj: _all(tests, (obj["metadata"].get("labels") or {}))


def _all(tests: list[_Test], labels: Labels) -> bool:
    return all(test(labels) for test in tests)


class _LabelParser:
    """One pass over the tokens of a selector.

    The grammar is that of `k8s.io/apimachinery/pkg/labels`.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def parse(self) -> list[_Test]:
        tests: list[_Test] = []
        while self._peek():
            if self._peek() in _OPERATORS or self._peek() in ("(", ")", ","):
                raise bad_request(
                    f"found '{self._peek()}', expected: !, identifier, or 'end of string'"
                )
            tests.append(self._requirement())
            if not self._peek():
                break
            if self._take() != ",":
                raise bad_request(
                    f"found '{self._tokens[self._at - 1]}', expected: ',' or 'end of string'"
                )
            if not self._is_word() and self._peek() != "!":
                raise bad_request(f"found '{self._peek()}', expected: identifier after ','")
        return tests

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _is_word(self) -> bool:
        return self._peek() not in ("", "!", ",", "(", ")", *_OPERATORS)

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _unexpected(self, wanted: str) -> Exception:
        return bad_request(f"unable to parse requirement: found '{self._peek()}'{wanted}")

    def _word(self) -> str:
        if not self._is_word():
            raise self._unexpected(", expected: identifier")
        return self._take()

    def _key(self) -> str:
        key = self._word()
        _refuse("<nil>", key, qualified_name_faults(key))
        return key

    def _requirement(self) -> _Test:
        if self._peek() == "!":
            self._take()
            absent = self._key()
            return lambda labels: absent not in labels
        key = self._key()
        operator = self._peek()
        if operator in ("", ","):
            return lambda labels: key in labels
        if operator not in (*_OPERATORS, "in", "notin"):
            raise self._unexpected(", expected: in, notin, =, ==, !=, gt, lt")
        self._take()
        if operator in ("in", "notin"):
            values = self._values(key)
            return (
                (lambda labels: labels.get(key) in values)
                if operator == "in"
                else (lambda labels: labels.get(key) not in values)
            )
        value = "" if self._peek() in ("", ",") else self._word()
        if operator in ("<", ">"):
            return _compares(key, operator, _number(value))
        _refuse(f"values[0][{key}]", value, label_value_faults(value))
        return (
            (lambda labels: labels.get(key) != value)
            if operator == "!="
            else (lambda labels: labels.get(key) == value)
        )

    def _values(self, key: str) -> frozenset[str]:
        if self._peek() != "(":
            raise self._unexpected(" expected: '('")
        self._take()
        values = [""] if self._peek() in (",", ")") else []
        while self._peek() != ")":
            if self._peek() == ",":
                self._take()
                values += [""] if self._peek() in (",", ")") else []
                continue
            values.append(self._word())
            if self._peek() not in (",", ")"):
                raise self._unexpected(", expected: ',' or ')'")
        self._take()
        for index, value in enumerate(values):
            _refuse(f"values[{index}][{key}]", value, label_value_faults(value))
        return frozenset(values)


_OPERATORS = ("=", "==", "!=", "<", ">")


def _refuse(place: str, value: str, faults: list[str]) -> None:
    if faults:
        raise bad_request(
            f'unable to parse requirement: {place}: Invalid value: "{value}": {faults[0]}'
        )


def _number(value: str) -> int:
    if not re.fullmatch(r"-?\d+", value):
        why = "for 'Gt', 'Lt' operators, the value must be an integer"
        raise bad_request(
            f'unable to parse requirement: values[0]: Invalid value: "{value}": {why}'
        )
    return int(value)


def _compares(key: str, operator: str, bound: int) -> _Test:
    def test(labels: Labels) -> bool:
        value = labels.get(key, "")
        if not re.fullmatch(r"-?\d+", value):
            return False
        return int(value) > bound if operator == ">" else int(value) < bound

    return test


def selects(selector: Mapping[str, Any] | None) -> Predicate:
    """The predicate of a selector object (`matchLabels`, `matchExpressions`); none selects nothing,
    an empty one everything.
    """
    if selector is None:
        return lambda obj: False
    return parse_label_selector(render_label_selector(selector))


def render_label_selector(selector: Mapping[str, Any] | None) -> str:
    """A selector object in the string form, requirements sorted by key.

    >>> exists = [{"key": "c", "operator": "Exists"}]
    >>> render_label_selector({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": exists})
    'a=1,b=2,c'
    """
    selector = selector or {}
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        key, operator, values = (
            term["key"],
            term["operator"],
            ",".join(sorted(term.get("values") or ())),
        )
        shapes = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append((key, shapes[operator]))
    return ",".join(text for _, text in sorted(parts))


# What may be asked of a kind besides its name and namespace.
_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "jobs.batch": ("status.successful",),
    "events": (
        *(
            f"involvedObject.{field}"
            for field in (
                "kind",
                "namespace",
                "name",
                "uid",
                "apiVersion",
                "resourceVersion",
                "fieldPath",
            )
        ),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}


def parse_field_selector(text: str, group_resource: str) -> Predicate:
    """A predicate on whole objects. Raises 400 for a field that this kind cannot be asked for.

    >>> chooses = parse_field_selector("spec.nodeName=n1,status.phase!=Failed", "pods")
    >>> chooses({"spec": {"nodeName": "n1"}})
    True
    """
    tests = [_field_test(term, group_resource) for term in text.split(",") if term.strip()]
    return lambda obj: all(test(obj) for test in tests)


def _field_test(term: str, group_resource: str) -> Predicate:
    found = re.fullmatch(r"([^=!\s]*+)\s*+(==|=|!=)\s*+(.*+)", term.strip())
    if not found:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    field, operator, value = found.groups()
    if "=" in value:
        raise bad_request(f"invalid field selector: unescaped character in value: {ord('=')}")
    if field not in ("metadata.name", "metadata.namespace") and field not in _FIELDS.get(
        group_resource, ()
    ):
        known = ", ".join(f'"{name}"' for name in ("metadata.name", "metadata.namespace"))
        raise bad_request(
            f"field label not supported: {field}"
            if group_resource in _FIELDS
            else (f'"{field}" is not a known field selector: only {known}')
        )
    read = _field_reader(field)
    return (
        (lambda obj: read(obj) != value) if operator == "!=" else (lambda obj: read(obj) == value)
    )


def _field_reader(field: str) -> Callable[[Mapping[str, Any]], str]:
    path = ("source", "component") if field == "source" else tuple(field.split("."))

    def read(obj: Mapping[str, Any]) -> str:
        value: Any = obj
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if field == "spec.unschedulable":
            value = bool(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read
