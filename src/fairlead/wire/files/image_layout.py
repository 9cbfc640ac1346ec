"""An image archive in OCI layout: what its index names, and of which blobs each image consists.

Fairlead reads its own archives (`make image`) and refuses what they never have.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from fairlead.errors import UserError
from fairlead.wire.files.offline_bundle import BUNDLE_HINT

INDEX: Final = "index.json"
_T = TypeVar("_T")
_INDEX_TYPE: Final = "application/vnd.oci.image.index.v1+json"
_NAME_NOTE: Final = "org.opencontainers.image.ref.name"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_NAME: Final = re.compile(r"([a-z0-9]+(?:[._-][a-z0-9]+)*):(\w[\w.-]{0,127})", re.ASCII)


class Descriptor(Struct, frozen=True, rename="camel"):
    """One blob. `size`: in bytes."""

    media_type: str
    digest: str
    size: int
    annotations: dict[str, str] = {}

    @property
    def path(self) -> str:
        """In the archive.

        >>> Descriptor("", "sha256:00", 0).path
        'blobs/sha256/00'
        """
        return "blobs/" + self.digest.replace(":", "/")

    @property
    def is_index(self) -> bool:
        return self.media_type == _INDEX_TYPE


class _Index(Struct):
    manifests: list[Descriptor]


class _Manifest(Struct):
    config: Descriptor
    layers: list[Descriptor] = field(default_factory=list)


class NamedImage(NamedTuple):
    """An image of the archive's index."""

    name: str
    tag: str
    root: Descriptor


def parse_index(text: bytes, archive: str) -> list[NamedImage]:
    """The images of an archive's `index.json`. `archive`: its name, for messages.

    Raises UserError if it is none, names no image, or one without `NAME:TAG`.
    """
    rows = _decoded(text, _Index, archive, INDEX).manifests
    images = []
    for row in rows:
        written = row.annotations.get(_NAME_NOTE, "")
        match = _NAME.fullmatch(written)
        if match is None:
            raise _unexpected(archive, f"names an image {written[:100]!r}, not NAME:TAG")
        images.append(NamedImage(match[1], match[2], row))
    if not images:
        raise _unexpected(archive, "names no image")
    return images


def parse_members(text: bytes, descriptor: Descriptor, archive: str) -> list[Descriptor]:
    """What an index or a manifest consists of: manifests of the one, configuration and layers of
    the other. Raises UserError for anything else.
    """
    if descriptor.is_index:
        return _checked(_decoded(text, _Index, archive, descriptor.path).manifests, archive)
    manifest = _decoded(text, _Manifest, archive, descriptor.path)
    return _checked([manifest.config, *manifest.layers], archive)


def _checked(rows: list[Descriptor], archive: str) -> list[Descriptor]:
    for row in rows:
        if not _DIGEST.fullmatch(row.digest):
            raise _unexpected(archive, f"has the digest {row.digest[:100]!r}, not sha256:…")
    return rows


def _decoded(text: bytes, type: type[_T], archive: str, path: str) -> _T:
    try:
        return msgspec.json.decode(text, type=type)
    except msgspec.MsgspecError as error:
        raise _unexpected(archive, f"has a {path} that is none: {error}") from error


def _unexpected(archive: str, what: str) -> UserError:
    return UserError(f"image archive `{archive}` {what}", BUNDLE_HINT)
