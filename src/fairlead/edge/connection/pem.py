"""PEM bytes from a kubeconfig's fields or files, given to OpenSSL without a key on disk."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from fairlead.errors import UserError


def read_pem(field_name: str, encoded: str | None, path: str | None) -> bytes | None:
    """The PEM of a `…-data` field (base64), else of the file.

    None if neither is set.
    """
    if encoded:
        where = f"`{field_name}-data`"
        try:
            pem = base64.b64decode(encoded)
        except (binascii.Error, ValueError) as error:
            raise UserError(
                f"{where} is not base64: {error}",
                "write the file's content in base64, on one line",
            ) from error
    elif path:
        where = f"`{field_name}` file `{path}`"
        try:
            pem = Path(path).read_bytes()
        except OSError as error:
            raise UserError(
                f"{where} cannot be read: {error.strerror}", "check the path"
            ) from error
    else:
        return None
    if b"-----BEGIN" not in pem:
        raise UserError(f"{where} contains no PEM block", "it must contain `-----BEGIN …-----`")
    return pem


@contextlib.contextmanager
def in_memory_file(content: bytes) -> Iterator[str]:
    """A path with `content` while the context is open, which no directory lists: OpenSSL reads
    keys only from paths.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("fairlead", os.MFD_CLOEXEC)
    else:
        import tempfile

        descriptor, name = tempfile.mkstemp()
        Path(name).unlink()  # at once: from here on the file exists only as this descriptor
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield f"/dev/fd/{descriptor}"
    finally:
        os.close(descriptor)
