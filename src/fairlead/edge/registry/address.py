"""Where images are pushed, from what a user writes: `[http://]HOST[:PORT][/PATH]`."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from fairlead.edge.connection.connection import has_usable_host
from fairlead.edge.connection.credentials import basic
from fairlead.edge.connection.password_file import read_password
from fairlead.edge.connection.pem import read_pem
from fairlead.errors import UserError
from fairlead.wire.text.printable_address import printable_address

_HINT: Final = "write registry.example.com/team; http:// before it for one without TLS"
_PART: Final = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*", re.ASCII)


class RegistryAddress(Struct, frozen=True):
    """`server`: with scheme, without path. `folder`: before the names of images, "" = none.

    `login`: the Authorization header of user and password, "" = none.
    """

    server: str
    folder: str = ""
    login: str = ""
    ca_pem: bytes | None = None

    def repository(self, name: str) -> str:
        """
        >>> RegistryAddress("https://r.example", "team").repository("fairlead")
        'team/fairlead'
        """
        return f"{self.folder}/{name}" if self.folder else name

    def image(self, name: str, tag: str) -> str:
        """As the value `image` of an installation has it: without a scheme."""
        return f"{urlsplit(self.server).netloc}/{self.repository(name)}:{tag}"


def registry_address(
    written: str, user: str = "", password_file: str = "", ca_file: str = ""
) -> RegistryAddress:
    """The address. Raises UserError for a malformed one, for a user without a password or the
    reverse, and for files that cannot be read.

    >>> registry_address("http://localhost:5000/a/b/").folder
    'a/b'
    """
    address = written if "://" in written else f"https://{written}"
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in ("http", "https") and has_usable_host(address)
    except ValueError:
        is_whole = False
    if not is_whole or parts.query or parts.fragment:
        raise UserError(f"`{printable_address(written)}` is no address of a registry", _HINT)
    if parts.username is not None:
        raise UserError(
            f"`{printable_address(written)}` contains a user, which other users of this machine "
            "may read",
            "write --username NAME --password-file FILE",
        )
    folder = parts.path.strip("/")
    for part in folder.split("/") if folder else ():
        if not _PART.fullmatch(part):
            raise UserError(
                f"`{part}` cannot be a part of an image's name",
                "name the folder of the images, of lower-case letters and digits, without a tag",
            )
    if bool(user) != bool(password_file):
        given, missing = (
            ("--username", "--password-file")
            if user
            else (
                "--password-file",
                "--username",
            )
        )
        raise UserError(f"{given} needs {missing}", "give both, or neither")
    if ca_file and parts.scheme == "http":
        raise UserError("a registry without TLS has no authority", "leave --ca-file out")
    return RegistryAddress(
        f"{parts.scheme}://{parts.netloc}",
        folder,
        basic(user, read_password(password_file)) if user else "",
        read_pem("--ca-file", None, ca_file or None),
    )
