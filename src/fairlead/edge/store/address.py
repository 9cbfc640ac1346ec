"""Where a store is: a URL without a password, and the password from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from fairlead.edge.connection.password_file import read_password
from fairlead.errors import UserError

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
MYSQL: Final = "mysql"
_PORTS: Final = {POSTGRESQL: 5432, MYSQL: 3306}
FORMS: Final = (
    "write `sqlite:///FILE`, `postgresql://USER@HOST:PORT/DATABASE` or "
    "`mysql://USER@HOST:PORT/DATABASE`"
)
IN_A_FILE: Final = "write it into a file and name that by --store-password-file"


class StoreAddress(Struct, frozen=True):
    """`engine`: `sqlite`, `postgresql` or `mysql` (also MariaDB). `file`: of SQLite; "" for others.

    `authority`: PEM file of the authority that signed the server's certificate, "" = those of this
    machine. `is_encrypted`: TLS, with the certificate checked. `password` is printed nowhere.
    """

    engine: str
    file: str = ""
    user: str = ""
    host: str = ""
    port: int = 0
    database: str = ""
    password: str = ""
    is_encrypted: bool = False
    authority: str = ""

    @property
    def place(self) -> str:
        """The store in messages.

        >>> StoreAddress("mysql", user="f", host="db", port=3306, database="f", password="x").place
        'mysql://f@db:3306/f'
        """
        if self.engine == SQLITE:
            return self.file
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.engine}://{self.user}@{host}:{self.port}/{self.database}"

    def __repr__(self) -> str:
        return f"StoreAddress({self.place})"


def store_address(url: str, password_file: str = "", authority: str = "") -> StoreAddress:
    """The address of a URL. `?tls=verify` encrypts the connection, and so does an authority.

    Raises UserError for what is no such URL, and for a file that cannot be read.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        # the URL may contain a password
        raise UserError("the URL of the store is malformed", FORMS) from error
    if parts.password is not None:
        raise UserError(
            "the URL of the store contains a password, which other users of this machine may read",
            IN_A_FILE,
        )
    if parts.scheme == SQLITE:
        return _sqlite_address(url, password_file, authority)
    if parts.scheme not in _PORTS:
        if not parts.scheme:  # what stands there may be a password
            raise UserError("the URL of the store names no engine", FORMS)
        raise UserError(f"`{parts.scheme}` is no engine of a store", FORMS)
    database = unquote(parts.path.removeprefix("/"))
    if not parts.username or not parts.hostname or not database:
        raise UserError(f"the URL `{url}` names no user, no host or no database", FORMS)
    return StoreAddress(
        parts.scheme,
        user=unquote(parts.username),
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        database=database,
        password=read_password(password_file) if password_file else "",
        is_encrypted=_is_encrypted(parts.query) or bool(authority),
        authority=authority,
    )


def _sqlite_address(url: str, password_file: str, authority: str) -> StoreAddress:
    _, _, rest = url.partition("://")
    path = unquote(rest.removeprefix("/"))
    if not rest.startswith("/") or not path or "?" in rest or "#" in rest:
        raise UserError(
            f"`{url}` names no file", "write `sqlite:////var/lib/fairlead/store.sqlite`"
        )
    if password_file or authority:
        raise UserError("SQLite has no password and no authority", "leave these flags out")
    return StoreAddress(SQLITE, file=str(Path(path).expanduser().absolute()))


def _is_encrypted(query: str) -> bool:
    for name, value in parse_qsl(query, keep_blank_values=True):
        if (name, value) != ("tls", "verify"):
            raise UserError(
                f"the URL of the store has the unknown parameter `{name}={value}`",
                "the only one is `tls=verify`",
            )
    return bool(query)
