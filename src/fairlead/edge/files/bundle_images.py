"""The image archive inside a bundle, read where it lies in the tar: nothing is extracted."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from fairlead.errors import UserError
from fairlead.wire.files.image_layout import (
    INDEX,
    Descriptor,
    NamedImage,
    parse_index,
    parse_members,
)
from fairlead.wire.files.offline_bundle import BUNDLE_HINT, split_path

ARCHIVE_ENDING: Final = ".oci.tar"
_TEXT_BYTES: Final = 4 << 20
"""No index or manifest is larger; registries refuse larger ones, too."""


class BundleImages:
    """`named`: the images of the archive's index, whose every blob is there in its size."""

    def __init__(self, archive: tarfile.TarFile, name: str) -> None:
        self._archive = archive
        self._name = name
        self.named: list[NamedImage] = parse_index(self._read(INDEX), name)
        for image in self.named:
            self._check(image.root)

    def members(self, descriptor: Descriptor) -> list[Descriptor]:
        """What an index or a manifest consists of."""
        return parse_members(self.text(descriptor), descriptor, self._name)

    def text(self, descriptor: Descriptor) -> bytes:
        """An index or a manifest. Raises UserError unless it is what its digest names."""
        found = self._read(descriptor.path)
        if f"sha256:{hashlib.sha256(found).hexdigest()}" != descriptor.digest:
            raise self._fault(f"has another content than its name at {descriptor.path}")
        return found

    @contextmanager
    def blob(self, descriptor: Descriptor) -> Iterator[IO[bytes]]:
        """A blob, to be read."""
        with self._opened(descriptor.path) as file:
            yield file

    def _check(self, descriptor: Descriptor) -> None:
        """Raises UserError if a blob is missing, so that nothing of such an image is pushed."""
        for each in self.members(descriptor):
            if descriptor.is_index:
                self._check(each)
                continue
            found = self._member(each.path).size
            if found != each.size:
                raise self._fault(f"has {found} bytes at {each.path}, not {each.size}")

    def _read(self, path: str) -> bytes:
        size = self._member(path).size
        if size > _TEXT_BYTES:
            raise self._fault(f"has {size} bytes at {path}, more than {_TEXT_BYTES}")
        with self._opened(path) as file:
            return file.read()

    def _opened(self, path: str) -> IO[bytes]:
        found = self._archive.extractfile(self._member(path))
        if found is None:
            raise self._fault(f"has no file at {path}")
        return found

    def _member(self, path: str) -> tarfile.TarInfo:
        try:
            return self._archive.getmember(path)
        except KeyError as error:
            raise self._fault(f"has no {path}") from error

    def _fault(self, what: str) -> UserError:
        return UserError(f"image archive `{self._name}` {what}", BUNDLE_HINT)


@contextmanager
def bundle_images(name: str) -> Iterator[BundleImages]:
    """The images of a bundle that `offline_bundle.check_bundle` has found undamaged.

    Raises UserError for one without an image archive, and for an archive that lacks a part.
    """
    try:
        with tarfile.open(name, mode="r:") as bundle:
            archives = [
                (place[1], member)
                for member in bundle
                if (place := split_path(member.name)) and place[1].endswith(ARCHIVE_ENDING)
            ]
            if not archives:
                raise UserError(f"bundle `{name}` has no image archive", BUNDLE_HINT)
            path, member = archives[0]
            with tarfile.open(fileobj=bundle.extractfile(member), mode="r:") as archive:
                yield BundleImages(archive, path)
    except (tarfile.TarError, OSError) as error:
        raise UserError(
            f"the image archive of `{name}` cannot be read: {error}", BUNDLE_HINT
        ) from error
