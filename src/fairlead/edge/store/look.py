"""Whether a console could use a database, in one sentence. Nothing is written.

The trap: the password must be in no answer, and engines may repeat it; `engines.failures` and
`_hidden` take it out.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace
from sqlalchemy import text

from fairlead.edge.store import engines
from fairlead.edge.store.address import (
    FORMS,
    IN_A_FILE,
    MYSQL,
    POSTGRESQL,
    SQLITE,
    StoreAddress,
    store_address,
)
from fairlead.edge.store.migrate import stored_version
from fairlead.edge.store.tables import VERSIONS
from fairlead.errors import FairleadError
from fairlead.model.records.rows import StoreLook

_FORMS: Final = (  # a page has no flags
    "write `postgresql://USER@HOST:PORT/DATABASE` or `mysql://USER@HOST:PORT/DATABASE`, and the "
    "password into its own field"
)
_ENCODING: Final = "UTF8"
"""Of a PostgreSQL database."""
_CHARACTERS: Final = "utf8mb4"
"""Of an empty MySQL database. Fairlead's own tables name their character set themselves."""


class StoreLooks:
    """See `ports.StoreQuestions`."""

    async def look(self, url: str, password: str) -> StoreLook:
        return await asyncio.to_thread(look_at_store, url, password)


def look_at_store(url: str, password: str) -> StoreLook:
    """`url`: without a password, of PostgreSQL or MySQL."""
    try:
        address = store_address(url)
        if address.engine == SQLITE:
            hint = "name a PostgreSQL or MySQL server, or choose the built-in store"
            return StoreLook(False, "SQLite is the built-in store: a file, and no server", hint)
        return _looked(replace(address, password=password))
    except FairleadError as error:
        hint = _FORMS if error.hint in (FORMS, IN_A_FILE) else error.hint
        return StoreLook(False, _hidden(error.what, password), _hidden(hint, password))


def _looked(address: StoreAddress) -> StoreLook:
    with engines.failures(address):
        engine = engines.make_engine(address)
    try:
        with engines.failures(address), engine.connect() as connection:
            server = engines.engine_version(connection)
            if address.engine == POSTGRESQL:
                encoding = connection.scalar(text("SHOW server_encoding"))
                if encoding != _ENCODING:
                    sentence = f"the database `{address.place}` has the encoding `{encoding}`"
                    hint = f"create it with `ENCODING '{_ENCODING}'`: not every text fits in it"
                    return StoreLook(False, sentence, hint)
            version = stored_version(connection)
            if address.engine == MYSQL and not version:
                found = str(connection.scalar(text("SELECT @@character_set_database")))
                if found != _CHARACTERS:
                    sentence = f"the database `{address.place}` has the character set `{found}`"
                    hint = f"`ALTER DATABASE {address.database} CHARACTER SET {_CHARACTERS}`"
                    return StoreLook(False, sentence, hint)
    finally:
        engine.dispose()
    answer = f"`{address.place}` answers ({server})"
    if not version:
        hint = "the console makes its tables when it starts"
        return StoreLook(True, f"{answer}, and the database is empty", hint)
    if version != VERSIONS[-1]:
        hint = "the console brings it to its own schema when it starts"
        return StoreLook(True, f"{answer}, and has the older schema `{version}`", hint)
    return StoreLook(True, f"{answer}, and has this program's schema `{version}`")


def _hidden(words: str, password: str) -> str:
    return words.replace(password, "…") if password else words
