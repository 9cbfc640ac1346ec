"""Pages of lists and events of watches in Kubernetes' protobuf, decoded.

It is imported when the first of them has come: protobuf's C module is not for commands that never meet one.
What the fast way cannot read, such as a text that is no UTF-8, is handed to the reader of JSON object by
object, so that both forms leave out the same objects, with the same words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from fairlead.wire.kube.forms import UnreadableProtobuf
from fairlead.wire.kube.message_rows import parse_event, parse_node, parse_pod
from fairlead.wire.kube.messages import DecodeError, message_classes
from fairlead.wire.kube.protobuf import parse_envelope, parse_list, parse_message, raw_behind, usual_begin


class Odd(ValueError):
    """An object that must be read by way of its JSON."""


def _odd(item: Any) -> Any:
    raise Odd


_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {"Pod": parse_pod, "Node": parse_node, "Event": parse_event}
"""Of the kinds that are read by the thousand; others take the way of JSON."""


class MessagePage(Struct):
    """A page as decoded; `items` are messages, or raw JSON where they could not be decoded together."""

    items: list[Any]
    token: str
    version: str


class MessageEvent(NamedTuple):
    """An event of a watch, and its object in an envelope."""

    type: str
    body: bytes


class MessageForm:
    """How objects of one kind of the core API come in protobuf."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.row_of = _PARSERS.get(kind, _odd)
        """The row of a message. Raises what parsing one strange object raises in JSON, too, or `Odd`."""
        classes = message_classes()
        self._list = classes[f"{kind}List"].FromString
        self._item = classes[kind].FromString
        self._event = classes["WatchEvent"].FromString
        self._begins = {name: usual_begin(name) for name in (kind, f"{kind}List")}

    def decode_page(self, body: bytes) -> MessagePage:
        """Raises UnreadableProtobuf."""
        raw = self._raw(body, f"{self._kind}List")
        if self.row_of is not _odd:
            try:
                page = self._list(raw)
            except DecodeError:
                pass
            else:
                return MessagePage(page.items[:], getattr(page.metadata, "continue"), page.metadata.resourceVersion)
        meta, items = parse_list(raw)
        return MessagePage([self._json(item) for item in items], meta.get("continue", ""), meta.get("resourceVersion", ""))

    def as_json(self, item: Any) -> Raw:
        """A whole object as its JSON. Raises UnreadableProtobuf."""
        return item if isinstance(item, Raw) else self._json(item.SerializeToString())

    def decode_event(self, frame: bytes) -> MessageEvent:
        """Raises UnreadableProtobuf."""
        try:
            event = self._event(frame)
        except DecodeError as error:
            raise UnreadableProtobuf(f"an event of a watch cannot be read: {error}") from error
        return MessageEvent(event.type, event.object.raw)

    def decode_object(self, body: bytes) -> Any:
        """The object of an event: a message, or raw JSON where it is no sound one.

        Raises UnreadableProtobuf.
        """
        raw = self._raw(body, self._kind)
        try:
            return self._item(raw)
        except DecodeError:
            return self._json(raw)

    def _json(self, raw: bytes) -> Raw:
        return Raw(msgspec.json.encode(parse_message(f"core.{self._kind}", raw)))

    def _raw(self, body: bytes, kind: str) -> bytes:
        raw = raw_behind(self._begins[kind], body)
        if raw is not None:
            return raw
        envelope = parse_envelope(body)
        if (envelope.api_version, envelope.kind) != ("v1", kind):
            raise UnreadableProtobuf(f"a `{envelope.kind}` of `{envelope.api_version}` came where a `{kind}` was asked for")
        return envelope.raw
