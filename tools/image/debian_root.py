"""The layer of Debian: files kept of the packages, and files of maintainer scripts.

Packages are only unpacked. Programs other than Python, documents, manual pages, locales and tests
of the standard library are left out; the licences (`copyright`) stay.
"""

from __future__ import annotations

import io
import posixpath
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from image.tree import File, Folder, Link, Tree
from progress import StepFailed

PYTHON = "usr/bin/python3.11"
STANDARD_LIBRARY = "usr/lib/python3.11"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
USER = 65532
_AR = b"!<arch>\n"
_AR_HEADER = 60
_MERGED = ("bin", "sbin", "lib", "lib64")
_MODULES_LEFT_OUT = (
    "__phello__|ctypes/test|ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo|unittest/test"
    "|distutils/tests|curses|dbm|venv|EXTERNALLY-MANAGED|sitecustomize\\.py"
)
_EXTENSIONS_LEFT_OUT = (
    "_crypt|_ctypes_test|_curses|_curses_panel|_dbm|_test\\w+|_xx\\w+|nis|ossaudiodev|readline"
    "|xxlimited\\w*"
)
"""Tests, and what needs a library that the image does not have."""
_LEFT_OUT = re.compile(
    r"usr/s?bin/(?!python3\.11$)"
    r"|usr/share/(?!doc/[^/]+/copyright$|zoneinfo/|ca-certificates/)"
    r"|usr/share/zoneinfo/(posix|right|localtime|posixrules|leap)"
    r"|usr/lib/(valgrind|tmpfiles\.d|systemd|debug)"
    r"|usr/lib/[^/]+/(gconv|audit|perl)"
    rf"|{re.escape(STANDARD_LIBRARY)}/(({_MODULES_LEFT_OUT})(/|$)"
    rf"|lib-dynload/({_EXTENSIONS_LEFT_OUT})\.)"
    r"|etc/(python3\.11|ca-certificates)"
    r"|usr/share/ca-certificates/(?!mozilla/)"
)


def debian_tree(packages: list[Path]) -> dict[str, File | Link | Folder]:
    """The root folder of the image, without bytecode, from files of Debian packages."""
    found: dict[str, File | Link | Folder] = {}
    for package in packages:
        found |= dict(unpacked(package.read_bytes(), package.name))
    roots = b"".join(
        entry.content if entry.content.endswith(b"\n") else entry.content + b"\n"
        for path, entry in sorted(found.items())
        if path.startswith("usr/share/ca-certificates/") and isinstance(entry, File)
    )
    kept = {
        path: entry
        for path, entry in found.items()
        if not _LEFT_OUT.match(path) and not path.startswith("usr/share/ca-certificates/")
    }
    return {**kept, **_written(roots)}


def unpacked(package: bytes, name: str) -> Iterator[tuple[str, File | Link]]:
    """The files and links of a .deb by path, in the merged `/usr` (`lib/x` is `usr/lib/x`)."""
    hard_links: dict[str, File] = {}
    with tarfile.open(fileobj=io.BytesIO(_member(package, "data.tar", name))) as tar:
        for header in tar:
            path = _merged(posixpath.normpath(header.name))
            if header.issym():
                yield path, Link(header.linkname)
            elif header.islnk():
                yield path, hard_links[_merged(posixpath.normpath(header.linkname))]
            elif header.isfile():
                content = tar.extractfile(header)
                assert content is not None
                file = hard_links[path] = File(content.read(), bool(header.mode & 0o111))
                yield path, file


def _merged(path: str) -> str:
    return f"usr/{path}" if path.partition("/")[0] in _MERGED else path


def _member(package: bytes, prefix: str, name: str) -> bytes:
    """A member of the `ar` archive that a .deb is."""
    if not package.startswith(_AR):
        raise StepFailed(f"{name} is no Debian package: it begins with {package[:8]!r}")
    place = len(_AR)
    while place < len(package):
        header = package[place : place + _AR_HEADER]
        size = int(header[48:58])
        start = place + _AR_HEADER
        if header[:16].decode("ascii").startswith(prefix):
            return package[start : start + size]
        place = start + size + size % 2
    raise StepFailed(f"{name} has no member {prefix}")


def _written(certificates: bytes) -> Tree:
    """What maintainer scripts and `base-files` would make, as far as Fairlead's processes read it.

    `cert.pem` is where OpenSSL looks without being configured.
    """
    accounts = f"root:x:0:0:root:/:\nfairlead:x:{USER}:{USER}:Fairlead:/:\n"
    groups = f"root:x:0:\nfairlead:x:{USER}:\n"
    return {
        **{name: Link(f"usr/{name}") for name in _MERGED},
        "usr/lib64": Folder(),
        "usr/sbin": Folder(),
        "usr/bin/python3": Link("python3.11"),
        CERTIFICATES: File(certificates),
        "usr/lib/ssl/cert.pem": Link(f"/{CERTIFICATES}"),
        "etc/passwd": File(accounts.encode()),
        "etc/group": File(groups.encode()),
        "etc/nsswitch.conf": File(b"passwd: files\ngroup: files\nhosts: files dns\n"),
        "etc/ld.so.conf": File(b"include /etc/ld.so.conf.d/*.conf\n"),
        **{name: Folder() for name in ("dev", "proc", "run", "sys", "var", "var/lib")},
        "tmp": Folder(0o1777),
    }
