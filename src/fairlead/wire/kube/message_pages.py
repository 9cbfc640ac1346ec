"""Decodes pages of lists and events of watches in Kubernetes' protobuf.

The module is imported with the first such body: protobuf's C module is not for commands that never
read one. An object that this fast reader cannot read, for example with text that is not UTF-8, is
passed to the JSON reader, so that both forms skip the same objects with the same messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from fairlead.wire.kube.forms import UnreadableProtobuf
from fairlead.wire.kube.message_rows import ChangedPods, parse_event, parse_node, parse_pod
from fairlead.wire.kube.messages import DecodeError, message_classes
from fairlead.wire.kube.protobuf import (
    list_spans,
    metadata_span,
    parse_envelope,
    parse_message,
    span_behind,
    usual_begin,
)


class NeedsJson(ValueError):
    """This object must be read by way of its JSON."""


def _needs_json(*_: Any) -> Any:
    raise NeedsJson


PARSERS: Final[dict[str, Callable[[Any, bytes], Any]]] = {
    "Pod": parse_pod,
    "Node": parse_node,
    "Event": parse_event,
}
"""Parsers of the kinds that clusters have by the thousand; other kinds are read by way of JSON."""
_USUAL_EVENT_END: Final = b"\x1a\0\x22\0"
_NO_SHAPE: Final = -1, ""
_LENGTHS_BYTES: Final = len(b"\n.\x12..\n....")
"""The tags and two-byte lengths that an event has before its object, beside its type and envelope.
"""
_METADATA: Final = 1 << 3 | 2
"""The tag of an object's first field, its metadata."""
_SHAPES_KEPT: Final = 8_192


def _kept(
    parse: Callable[[Any, bytes], Any], keep: Callable[[Any], Any]
) -> Callable[[Any, bytes], Any]:
    return lambda item, raw: keep(parse(item, raw))


class MessagePage(Struct):
    """A decoded page: the positions of its objects in its body.

    Objects are read one by one, so that each reuses the memory of the one before it.
    """

    body: bytes
    spans: list[tuple[int, int]]
    token: str
    version: str

    def raws(self) -> Iterator[bytes]:
        body = self.body
        return (body[begin:end] for begin, end in self.spans)


class MessageForm:
    """The protobuf form of one kind of the core API.

    `keep`: returns the part of a row that is kept.
    """

    def __init__(self, kind: str, keep: Callable[[Any], Any] | None = None) -> None:
        self._kind = kind
        parse: Callable[[Any, bytes], Any] = PARSERS.get(kind, _needs_json)
        self._keep = keep
        self._parse = parse if keep is None else _kept(parse, keep)
        classes = message_classes()
        self._item: Callable[[bytes], Any] = (
            classes[kind].FromString if kind in PARSERS else _needs_json
        )
        self._name = classes["Name"].FromString
        self._event = classes["WatchEvent"].FromString
        self._begins = {name: usual_begin(name) for name in (kind, f"{kind}List")}
        self._changed = ChangedPods() if kind == "Pod" else None
        self._shapes: dict[bytes, tuple[int, str]] = {}
        """Length and type of an event by its first bytes, which precede its object."""
        self._shape_bytes = _LENGTHS_BYTES + len(self._begins[kind])

    def decode_page(self, body: bytes) -> MessagePage:
        """The positions of the objects in a list. Raises UnreadableProtobuf."""
        meta, spans = list_spans(body, *self._span(body, f"{self._kind}List"))
        return MessagePage(body, spans, meta.get("continue", ""), meta.get("resourceVersion", ""))

    def row(self, raw: bytes) -> Any:
        """The row of an object. Raises what parsing it as JSON raises, or `NeedsJson`."""
        try:
            return self._parse(self._item(raw), raw)
        except DecodeError as error:
            raise NeedsJson from error

    def row_and_version(self, raw: bytes, *, is_new: bool = False) -> tuple[Any, str]:
        """As `row`, with the object's resource version.

        `is_new`: the watch has not reported it before.
        """
        try:
            if self._changed is not None and not is_new:
                row, version = self._changed.row_and_version(raw)
                return (row if self._keep is None else self._keep(row)), version
            item = self._item(raw)
            return self._parse(item, raw), item.metadata.resourceVersion
        except DecodeError as error:
            raise NeedsJson from error

    def identity(self, raw: bytes, reason: UnreadableProtobuf | None = None) -> Any:
        """The part of metadata that identifies the object.

        Raises UnreadableProtobuf, or the reason why the object is known to be unreadable.
        """
        try:
            return self.briefly(raw)[0]
        except UnreadableProtobuf as error:
            raise reason or error from error

    def briefly(self, raw: bytes, mark: bytes = b"") -> tuple[Any, bool]:
        """The same, and whether `mark` occurs anywhere in the object except in its metadata."""
        try:
            # the usual case: a length of two bytes
            if raw[0] == _METADATA and raw[1] > 0x7F >= raw[2]:
                begin, end = 3, 3 + (raw[1] & 0x7F | raw[2] << 7)
            else:
                begin, end = metadata_span(raw)
            if end > len(raw):
                raise IndexError("its metadata is cut off")
            return self._name(raw[begin:end]), raw.find(mark, end) >= 0
        except (DecodeError, IndexError) as error:
            raise UnreadableProtobuf(f"an object without a readable name: {error}") from error

    def as_json(self, raw: bytes) -> Raw:
        """The whole object as JSON. Raises UnreadableProtobuf."""
        return Raw(msgspec.json.encode(parse_message(f"core.{self._kind}", raw)))

    def decode_event(self, frame: bytes) -> tuple[str, bytes]:
        """The type of an event and the bytes of its object.

        For an ERROR, the object in its envelope.

        Raises UnreadableProtobuf.
        """
        begin = frame[: self._shape_bytes + frame[1]] if len(frame) > 1 else b""
        length, type = self._shapes.get(begin, _NO_SHAPE)
        if length == len(frame):
            return type, frame[len(begin) : -len(_USUAL_EVENT_END)]
        try:
            event = self._event(frame)
        except DecodeError as error:
            raise UnreadableProtobuf(f"an event of a watch cannot be read: {error}") from error
        type, body = event.type, event.object.raw
        if type == "ERROR":
            return type, body
        raw = body[slice(*self._span(body, self._kind))]
        if (
            len(begin) + len(raw) + len(_USUAL_EVENT_END) == len(frame)
            and frame.endswith(raw + _USUAL_EVENT_END)
            and frame.endswith(body)
        ):
            if len(self._shapes) >= _SHAPES_KEPT:
                self._shapes.clear()
            self._shapes[begin] = len(frame), type
        return type, raw

    def _span(self, body: bytes, kind: str) -> tuple[int, int]:
        """The position of the object in its envelope: begin and end."""
        span = span_behind(self._begins[kind], body)
        if span is not None:
            return span
        envelope = parse_envelope(body)
        if (envelope.api_version, envelope.kind) != ("v1", kind):
            raise UnreadableProtobuf(
                f"a `{envelope.kind}` of `{envelope.api_version}` came where a `{kind}` was asked "
                "for"
            )
        at = body.rindex(envelope.raw)
        return at, at + len(envelope.raw)
