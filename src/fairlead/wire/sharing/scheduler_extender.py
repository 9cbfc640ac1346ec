"""Requests of kube-scheduler to an extender, and the answers.

Specification: docs/spec/gpu-sharing.md#endpoints-of-the-extender.

Keys are Go field names, written exactly and read in any case; the Pod inside is an ordinary
Kubernetes object. An absent list is `null`. The answer has the form of the request: names for
names, whole Nodes for whole Nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from fairlead.model.pod import Pod
from fairlead.model.sharing import BindAsked
from fairlead.wire.kube.objects import WirePod, parse_pod

Value = TypeVar("Value")
_NONE = b"null"
_NAME_MAX = 253
_SHOWN = 80
_SUBDOMAIN = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII
)


class BadBody(ValueError):
    """The body does not fit the verb; the text has the reason."""


class FilterAsked(Struct, frozen=True):
    """`names`: the nodes in the order of the request.

    `nodes`: the raw objects by name when the request has whole Nodes, else None.
    """

    pod: Pod
    names: list[str]
    nodes: Mapping[str, Raw] | None = None
    has_names: bool = True


class PreemptAsked(Struct, frozen=True):
    """A question.

    `victims` by node: uids of the pods, and the number of disruption budgets that evicting them
    violates.
    """

    pod: Pod
    victims: Mapping[str, tuple[tuple[str, ...], int]]


class _Name(Struct):
    name: str = ""


class _Node(Struct):
    metadata: _Name


class _PodUid(Struct):
    uid: str = ""


class _VictimPod(Struct):
    metadata: _PodUid


_object = msgspec.json.Decoder(dict[str, Raw])
_pod = msgspec.json.Decoder(WirePod)
_names = msgspec.json.Decoder(list[str] | None)
_raws = msgspec.json.Decoder(list[Raw] | None)
_node = msgspec.json.Decoder(_Node)
_victims = msgspec.json.Decoder(dict[str, Raw] | None)
_victim = msgspec.json.Decoder(_VictimPod)
_text = msgspec.json.Decoder(str)
_count = msgspec.json.Decoder(int)


def parse_filter(body: bytes) -> FilterAsked:
    """The pod and nodes of ExtenderArgs. Raises BadBody.

    >>> parse_filter(b'{"pod":{"metadata":{"name":"p"}},"NODENAMES":["n1"]}').names
    ['n1']
    """
    fields = _fields(body, "ExtenderArgs")
    pod = _parse_pod(fields)
    names = _read(_names, fields, "NodeNames", "a list of strings")
    listed = fields.get("nodes", _NONE)
    if names is not None or bytes(listed) == _NONE:
        return FilterAsked(pod, names or [], has_names=names is not None)
    try:
        str(bytes(listed), "utf-8")  # they are returned as they came, so no other code checks them
    except UnicodeDecodeError as error:
        raise BadBody(f"Nodes is not UTF-8: {error}") from error
    items = _read(_raws, _fields(listed, "Nodes"), "Items", "a list of Nodes") or []
    nodes = {_decode(_node, item, "Nodes.items", "Nodes").metadata.name: item for item in items}
    return FilterAsked(pod, list(nodes), nodes, has_names=False)


def render_filter(
    asked: FilterAsked,
    passed: Sequence[str],
    failed: Mapping[str, str],
    hopeless: Mapping[str, str],
) -> bytes:
    """ExtenderFilterResult in the form of the request."""
    nodes = (
        None
        if asked.nodes is None
        else {"metadata": {}, "items": [asked.nodes[name] for name in passed]}
    )
    return _filter_result(nodes, passed if asked.has_names else None, failed, hopeless, "")


def render_filter_error(why: str) -> bytes:
    """ExtenderFilterResult for a filter that failed."""
    return _filter_result(None, None, None, None, why)


def _filter_result(
    nodes: Any,
    names: Sequence[str] | None,
    failed: Mapping[str, str] | None,
    hopeless: Mapping[str, str] | None,
    error: str,
) -> bytes:
    return msgspec.json.encode(
        {
            "Nodes": nodes,
            "NodeNames": names,
            "FailedNodes": failed,
            "FailedAndUnresolvableNodes": hopeless,
            "Error": error,
        }
    )


def render_priorities(scores: Sequence[tuple[str, int]]) -> bytes:
    """HostPriorityList.

    >>> render_priorities([("n1", 7)])
    b'[{"Host":"n1","Score":7}]'
    """
    return msgspec.json.encode([{"Host": name, "Score": score} for name, score in scores])


def parse_bind(body: bytes) -> BindAsked:
    """ExtenderBindingArgs. Raises BadBody, also for a pod or node without a name."""
    fields = _fields(body, "ExtenderBindingArgs")
    texts = {name: _text_of(fields, name) for name in ("PodNamespace", "PodName", "PodUID", "Node")}
    if missing := [name for name, text in texts.items() if not text]:
        raise BadBody(f"ExtenderBindingArgs without {', '.join(missing)}")
    for name, text in texts.items():
        if not _is_name(text):
            raise BadBody(f"{name} is {_printable(text)}, which is no name of Kubernetes")
    return BindAsked(texts["PodNamespace"], texts["PodName"], texts["PodUID"], texts["Node"])


def _is_name(text: str) -> bool:
    """Whether the text is a DNS subdomain, as names of pods, namespaces and nodes and uids are."""
    return len(text) <= _NAME_MAX and _SUBDOMAIN.fullmatch(text) is not None


def _printable(text: str) -> str:
    """The text quoted, cut, and on one line."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def render_error(why: str) -> bytes:
    """ExtenderBindingResult; "" = the pod is bound.

    >>> render_error("")
    b'{"Error":""}'
    """
    return msgspec.json.encode({"Error": why})


def parse_preempt(body: bytes) -> PreemptAsked:
    """ExtenderPreemptionArgs, with whole pods or with their uids. Raises BadBody."""
    fields = _fields(body, "ExtenderPreemptionArgs")
    pod = _parse_pod(fields)
    metas = _read(_victims, fields, "NodeNameToMetaVictims", "an object")
    if metas is not None:
        return PreemptAsked(
            pod, {node: _parse_victims(each, is_whole=False) for node, each in metas.items()}
        )
    whole = _read(_victims, fields, "NodeNameToVictims", "an object") or {}
    return PreemptAsked(
        pod, {node: _parse_victims(each, is_whole=True) for node, each in whole.items()}
    )


def render_preempt(victims: Mapping[str, tuple[Sequence[str], int]]) -> bytes:
    """ExtenderPreemptionResult."""
    by_node = {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": count}
        for node, (uids, count) in victims.items()
    }
    return msgspec.json.encode({"NodeNameToMetaVictims": by_node})


def _parse_victims(raw: Raw, *, is_whole: bool) -> tuple[tuple[str, ...], int]:
    if bytes(raw) == _NONE:
        return (), 0
    fields = _fields(raw, "Victims")
    pods = _read(_raws, fields, "Pods", "a list") or []
    uids = [
        _decode(_victim, each, "Pods", "Pods").metadata.uid
        if is_whole
        else _text_of(_fields(each, "MetaPod"), "UID")
        for each in pods
    ]
    return tuple(uid for uid in uids if uid), _read(
        _count, fields, "NumPDBViolations", "a whole number"
    ) or 0


def _fields(body: bytes | Raw, what: str) -> dict[str, Raw]:
    """An object's fields by lower-case key.

    Of keys that differ only in case the last counts, as in Go.
    """
    return {
        name.lower(): value for name, value in _decode(_object, body, what, "a JSON object").items()
    }


def _parse_pod(fields: Mapping[str, Raw]) -> Pod:
    raw = bytes(fields.get("pod", _NONE))
    if raw == _NONE:
        raise BadBody("there is no Pod")
    return _pod_of(raw)


@lru_cache(maxsize=32)  # prioritize sends the same bytes as filter before it
def _pod_of(raw: bytes) -> Pod:
    wire = _decode(_pod, raw, "Pod", "a Pod")
    try:
        return parse_pod(wire)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise BadBody(f"Pod cannot be read: {error or type(error).__name__}") from error


def _text_of(fields: Mapping[str, Raw], name: str) -> str:
    return _read(_text, fields, name, "a string") or ""


def _read(
    decoder: msgspec.json.Decoder[Value], fields: Mapping[str, Raw], name: str, wanted: str
) -> Value | None:
    raw = fields.get(name.lower(), _NONE)
    return None if bytes(raw) == _NONE else _decode(decoder, raw, name, wanted)


def _decode(
    decoder: msgspec.json.Decoder[Value], body: bytes | Raw, name: str, wanted: str
) -> Value:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadBody(f"{name} is not {wanted}: {error}") from error
