"""Decodes pages of a list and lines of a watch into rows: at once, or one by one.

One by one if an item does not fit the form.

A malformed object neither fails the page nor counts as absent. It is reported with its key, so that
the reader keeps its earlier row.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.kube.api_failure import Status, decode_status
from fairlead.edge.kube.resource import CONFIG_MAPS, NAMESPACES, Resource
from fairlead.model.changes import ChangeType
from fairlead.wire.kube.forms import MAGIC, JsonForm, UnreadableProtobuf
from fairlead.wire.kube.objects import JsonAndProtobufForm

if TYPE_CHECKING:
    from fairlead.wire.kube.message_pages import MessageForm, MessagePage

log = logging.getLogger("fairlead.kubernetes")
_EARLY_TOKEN = re.compile(
    rb'\{"kind":"\w+","apiVersion":"[\w./-]+","metadata":\{"resourceVersion":"\d+","continue":"([\w+/=.-]+)"'
)

Wire = TypeVar("Wire")
Row = TypeVar("Row")

_LEVELS_MAX = 600
"""The deepest JSON that is decoded; deeper values become null.

The decoder's recursion limit is 1000.
"""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')

_ADDED: Final = ChangeType.ADDED
_PRESENT = (ChangeType.MODIFIED, _ADDED)
UNREADABLE = (ValueError, TypeError, ArithmeticError, LookupError, msgspec.MsgspecError)
"""Exceptions from decoding or parsing one malformed object.

Any other exception is a bug and passes.
"""
UNREADABLE_OR_RAW = (*UNREADABLE, AttributeError)
"""The same, and the exception of a raw item that is asked for its metadata."""
_FEW: Final = (NAMESPACES, CONFIG_MAPS)
"""Resources read in protobuf by way of JSON, because there are few objects of them."""


def without_the_deepest(body: bytes, levels: int = _LEVELS_MAX) -> bytes:
    """JSON in which values beyond `levels` levels are null.

    >>> without_the_deepest(b'{"a":[{"b":["]"]}],"c":[1]}', 2)
    b'{"a":[null],"c":[1]}'
    """
    kept: list[bytes] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(body):
        sign = token[0]
        if sign in (b"[", b"{"):
            depth += 1
            if depth == levels + 1:
                kept += (body[start : token.start()], b"null")
        elif sign in (b"]", b"}"):
            if depth == levels + 1:
                start = token.end()
            depth -= 1
    return b"".join((*kept, body[start:]))


class ListMeta(Struct, rename="camel"):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")
    remaining_item_count: int | None = None


class ObjectMeta(Struct, rename="camel"):
    """The part of metadata that identifies the object."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class AnyObject(Struct):
    metadata: ObjectMeta | None = None


class WirePage(Struct, Generic[Wire]):
    """A decoded page: items of the wanted type, or raw items if an item does not fit the type."""

    metadata: ListMeta | None = None
    items: list[Wire] | None = None

    @property
    def token(self) -> str:
        return (self.metadata and self.metadata.continue_) or ""

    @property
    def version(self) -> str:
        return (self.metadata and self.metadata.resource_version) or ""


def early_token(body: bytes) -> str:
    """The next page's token, read before the page is decoded.

    "" means that there is none, or not in the usual place.

    >>> meta = b'"metadata":{"resourceVersion":"7","continue":"eyJ2"}'
    >>> early_token(b'{"kind":"PodList","apiVersion":"v1",' + meta + b',"items":[')
    'eyJ2'
    >>> early_token(b'{"items":[{"continue":"x"}]}')
    ''
    """
    if body.startswith(MAGIC):
        from fairlead.wire.kube import protobuf

        return protobuf.early_token(body)
    found = _EARLY_TOKEN.match(body)
    return found[1].decode() if found else ""


class WatchEvent(Struct, Generic[Wire], gc=False):
    type: str
    object: Wire


class Malformed(Struct, frozen=True):
    """An object that was left out: key, label, reason."""

    key: str
    label: str
    reason: str


class Page(Struct, Generic[Row]):
    """Rows by key, in the server's order (namespace, name)."""

    rows: dict[str, Row]
    malformed: list[Malformed]
    resource_version: str
    token: str


class Listing(Struct, Generic[Row]):
    """A whole list as of `resource_version`. `malformed` objects exist but are not in `rows`."""

    rows: dict[str, Row] = {}
    malformed: list[Malformed] = []
    resource_version: str = ""

    def add(self, page: Page[Row]) -> None:
        self.rows.update(page.rows)
        self.malformed += page.malformed
        self.resource_version = page.resource_version


class Change(Struct, Generic[Row], gc=False):
    """One event of a watch. `row` is None for DELETED, BOOKMARK, and a malformed object."""

    type: str
    key: str
    row: Row | None
    resource_version: str
    malformed: Malformed | None = None


def key_of(meta: Any) -> str:
    """The key of an object in a mirror: its uid, which rows contain anyway; a later object of
    the same name has another.
    """
    return meta.uid or f"{meta.namespace or ''}/{meta.name or ''}"


class WatchEnded(Exception):
    """The server ended a watch with an ERROR event."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class ItemReader(Generic[Row]):
    """Turns objects of one resource into rows, as their `form` decides.

    `keep` makes the row that is kept of a row, in JSON and in protobuf alike. An event of a watch
    without `mark` makes no row unless its object `is_known` (by key): most of it is not even looked
    at. In protobuf the mark must stand elsewhere than in metadata. `with_object` makes what is
    reported from a row and its whole object, in JSON alone. `malformed_total` counts objects left
    out since the start. Each is logged once until another reason appears.
    """

    def __init__(
        self,
        resource: Resource,
        form: JsonForm[Row] | JsonAndProtobufForm[Row],
        mark: bytes = b"",
        is_known: Callable[[str], bool] = lambda _: True,
        *,
        keep: Callable[[Row], Row] | None = None,
        with_object: Callable[[Any, bytes], Row] | None = None,
    ) -> None:
        self.resource = resource
        self._with_object = with_object
        self.malformed_total = 0
        self._keep = keep
        json = form.json if isinstance(form, JsonAndProtobufForm) else form
        wire, parse = json.wire, json.parse
        self._parse = parse if keep is None else lambda wire: keep(parse(wire))
        self._mark = mark
        self._is_known = is_known
        self._item = decoder_of(wire)
        self._page: msgspec.json.Decoder[WirePage[Any]] = decoder_of(WirePage[wire])  # type: ignore[valid-type]
        self._raw_page: msgspec.json.Decoder[WirePage[Any]] = decoder_of(WirePage[Raw])
        self._event: msgspec.json.Decoder[WatchEvent[Any]] = decoder_of(WatchEvent[wire])  # type: ignore[valid-type]
        self._raw_event = decoder_of(WatchEvent[Raw])
        self._brief_event = decoder_of(WatchEvent[AnyObject])
        self._identity = decoder_of(AnyObject)
        self._reported: dict[str, str] = {}
        self._kind = (
            form.kind
            if isinstance(form, JsonAndProtobufForm)
            else resource.kind
            if resource in _FEW
            else ""
        )
        self._made_form: MessageForm | None = None

    @property
    def takes_protobuf(self) -> bool:
        """Whether objects may come in Kubernetes' protobuf, which takes half of a server's work."""
        return bool(self._kind)

    @property
    def _form(self) -> MessageForm:
        if self._made_form is None:
            from fairlead.wire.kube.message_pages import MessageForm

            self._made_form = MessageForm(self._kind, self._keep)
        return self._made_form

    def decode_page(self, body: bytes) -> WirePage[Any] | MessagePage:
        """The first half of reading a page, which is fast and gives the next page's token.

        Raises DecodeError when it is no list, UnreadableProtobuf when it begins as protobuf and is
        malformed.
        """
        if self._kind and body.startswith(MAGIC):
            return self._form.decode_page(body)
        try:
            return self._decode_page(body)
        except RecursionError:
            return self._decode_page(without_the_deepest(body))

    def _decode_page(self, body: bytes) -> WirePage[Any]:
        if self._with_object is not None:
            return self._raw_page.decode(body)
        try:
            return self._page.decode(body)
        except UNREADABLE:
            return self._raw_page.decode(body)

    def parse_page(self, page: WirePage[Any] | MessagePage) -> Page[Row]:
        """The second half: rows.

        Raises UnreadableProtobuf for a malformed item of a page in protobuf.
        """
        if not isinstance(page, WirePage):
            return self._parse_messages(page)
        items, malformed = page.items or [], list[Malformed]()
        parse = self._parse
        try:
            rows = {item.metadata.uid or key_of(item.metadata): parse(item) for item in items}
        except UNREADABLE_OR_RAW:
            rows, malformed = self._parse_singly(items)
        return Page(rows, malformed, page.version, page.token)

    def _parse_messages(self, page: MessagePage) -> Page[Row]:
        form, rows = self._form, dict[str, Row]()
        row_of = form.row
        try:
            for raw in page.raws():
                row = row_of(raw)
                rows[row.uid or key_of(form.identity(raw))] = row
        except UNREADABLE:
            rows, malformed = self._parse_messages_singly(page.raws())
            return Page(rows, malformed, page.version, page.token)
        return Page(rows, [], page.version, page.token)

    def read_changes(self, lines: bytes) -> list[Change[Row]]:
        """The changes in complete lines of a watch, all or none.

        Raises WatchEnded for an ERROR event, and msgspec.DecodeError for a line that is no event. A
        malformed object gives a Change without a row.
        """
        try:
            return self._read_lines(lines)
        except RecursionError:
            return self._read_lines(
                b"\n".join(without_the_deepest(line) for line in lines.split(b"\n"))
            )

    def read_frames(self, frames: Sequence[bytes]) -> list[Change[Row]]:
        """The changes in complete frames of a watch in protobuf, all or none; as `read_changes`.

        Raises UnreadableProtobuf for a frame that is no event.
        """
        news: set[str] = set()  # known from here on, though not yet delivered
        changes: list[Change[Row]] = []
        for frame in frames:
            change = self._read_frame(frame, news)
            changes.append(change)
            if self._mark and (change.row is not None or change.malformed is not None):
                news.add(change.key)
        return changes

    def _read_frame(self, frame: bytes, news: Collection[str]) -> Change[Row]:
        form = self._form
        kind, raw = form.decode_event(frame)
        if kind == "ERROR":
            raise WatchEnded(decode_status(raw))
        try:
            is_wanted = kind in _PRESENT
            if is_wanted and not self._mark:
                row, version = form.row_and_version(raw, is_new=kind == _ADDED)
                return Change(kind, row.uid or key_of(form.identity(raw)), row, version)
            meta, is_marked = form.briefly(raw, self._mark)
            key = meta.uid or key_of(meta)
            is_wanted = is_wanted and (is_marked or key in news or self._is_known(key))
            return Change(kind, key, form.row(raw) if is_wanted else None, meta.resourceVersion)
        except UNREADABLE:
            return self._read_line(msgspec.json.encode({"type": kind, "object": form.as_json(raw)}))

    def _read_lines(self, lines: bytes) -> list[Change[Row]]:
        if self._mark:
            return self._read_marked(line for line in lines.split(b"\n") if line.strip())
        if self._with_object is not None:
            return [self._read_line(line) for line in lines.split(b"\n") if line.strip()]
        try:
            return [self._read_change(event) for event in self._event.decode_lines(lines)]
        except UNREADABLE:
            return [self._read_line(line) for line in lines.split(b"\n") if line.strip()]

    def _read_change(self, event: WatchEvent[Any]) -> Change[Row]:
        kind = event.type
        meta = event.object.metadata
        if kind in _PRESENT:
            return Change(
                kind,
                meta.uid or key_of(meta),
                self._parse(event.object),
                meta.resource_version or "",
            )
        if kind == "ERROR":
            raise ValueError("an ERROR event carries a Status, which is read from the raw line")
        return Change(kind, meta.uid or key_of(meta), None, meta.resource_version or "")

    def _read_marked(self, lines: Iterable[bytes]) -> list[Change[Row]]:
        changes: list[Change[Row]] = []
        news: set[str] = set()  # known from here on, though not yet delivered
        for line in lines:
            change = None if self._mark in line else self._read_briefly(line, news)
            if change is None:
                change = self._read_line(line)
                news.add(change.key)
            changes.append(change)
        return changes

    def _read_briefly(self, line: bytes, news: Collection[str]) -> Change[Row] | None:
        """The change; None if the line must be decoded completely."""
        try:
            event = self._brief_event.decode(line)
        except UNREADABLE:
            return None
        meta = event.object.metadata or ObjectMeta()
        key = key_of(meta)
        if event.type not in ("DELETED", "BOOKMARK") and (
            event.type == "ERROR" or key in news or self._is_known(key)
        ):
            return None
        return Change(event.type, key, None, meta.resource_version or "")

    def _read_line(self, line: bytes) -> Change[Row]:
        try:
            return (
                self._read_change(self._event.decode(line))
                if self._with_object is None
                else self._read_with_object(self._raw_event.decode(line), self._with_object)
            )
        except UNREADABLE as error:
            event = self._raw_event.decode(line)
            if event.type == "ERROR":
                raise WatchEnded(decode_status(bytes(event.object))) from None
            meta = self._identity_of(event.object)
            malformed = self._report(meta, error) if event.type in _PRESENT else None
            return Change(event.type, key_of(meta), None, meta.resource_version or "", malformed)

    def _read_with_object(
        self, event: WatchEvent[Raw], with_object: Callable[[Any, bytes], Row]
    ) -> Change[Row]:
        change = self._read_change(WatchEvent(event.type, self._item.decode(event.object)))
        if change.row is not None:
            change.row = with_object(change.row, bytes(event.object))
        return change

    def _parse_singly(self, items: Iterable[Any]) -> tuple[dict[str, Row], list[Malformed]]:
        rows: dict[str, Row] = {}
        malformed: list[Malformed] = []
        for each in items:
            item = each
            try:
                if isinstance(each, Raw):
                    item = self._item.decode(each)
                row = self._parse(item)
                if self._with_object is not None:
                    row = self._with_object(row, bytes(each))
                rows[key_of(item.metadata)] = row
            except UNREADABLE as error:
                meta = self._identity_of(each) if isinstance(each, Raw) else each.metadata
                malformed.append(self._report(meta, error))
        return rows, malformed

    def _parse_messages_singly(
        self, raws: Iterable[bytes]
    ) -> tuple[dict[str, Row], list[Malformed]]:
        form = self._form
        rows: dict[str, Row] = {}
        malformed: list[Malformed] = []
        for raw in raws:
            try:
                row = form.row(raw)
                rows[row.uid or key_of(form.identity(raw))] = row
            except UNREADABLE:
                try:
                    more, unreadable = self._parse_singly([form.as_json(raw)])
                except UnreadableProtobuf as error:
                    more, unreadable = {}, [self._report(form.identity(raw, error), error)]
                rows |= more
                malformed += unreadable
        return rows, malformed

    def _identity_of(self, raw: Raw) -> ObjectMeta:
        try:
            return self._identity.decode(raw).metadata or ObjectMeta()
        except msgspec.DecodeError:
            return ObjectMeta()

    def _report(self, meta: Any, error: Exception) -> Malformed:
        name = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name or "without a name"
        found = Malformed(
            key_of(meta), f"{self.resource.label} {name}", str(error) or type(error).__name__
        )
        self.malformed_total += 1
        if self._reported.get(found.key) != found.reason:
            if len(self._reported) > 10_000:
                self._reported.clear()
            self._reported[found.key] = found.reason
            log.warning("left out %s: %s", found.label, found.reason)
        return found
