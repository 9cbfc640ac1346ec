"""The check of a database before a console uses it, over real servers: one sentence for each state,
and the password in none.
"""

from __future__ import annotations

from urllib.parse import quote

import pytest
from msgspec import structs
from sqlalchemy import text
from tests.stores.database_servers import DatabaseServer

from fairlead.edge.store.address import MYSQL, StoreAddress
from fairlead.edge.store.engines import make_engine
from fairlead.edge.store.look import look_at_store
from fairlead.edge.store.migrate import migrate
from fairlead.edge.store.tables import VERSION_TABLE, VERSIONS
from fairlead.model.records.rows import StoreLook

SERVERS = pytest.mark.parametrize("engine", ["postgresql", "mariadb"])


def looked(address: StoreAddress, **other: str) -> StoreLook:
    """The answer, with other parts of the address. The password is in none."""
    asked = structs.replace(address, **other)
    host = f"{quote(asked.user, safe='')}@{asked.host}:{asked.port}"
    found = look_at_store(f"{asked.engine}://{host}/{asked.database}", asked.password)
    assert asked.password not in f"{found}"
    return found


def ran(address: StoreAddress, statement: str) -> None:
    engine = make_engine(address)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(statement))
    engine.dispose()


@SERVERS
def test_each_state_of_a_database_has_its_sentence(address: StoreAddress) -> None:
    if address.engine == MYSQL:
        ran(address, f"ALTER DATABASE {address.database} CHARACTER SET utf8mb4")
    empty = looked(address)
    assert empty.is_good and empty.sentence.endswith("and the database is empty")
    migrate(address)
    assert looked(address).sentence.endswith(f"this program's schema `{VERSIONS[-1]}`")
    ran(address, f"UPDATE {VERSION_TABLE} SET version_num = '{VERSIONS[0]}'")
    older = looked(address)
    assert older.is_good and f"the older schema `{VERSIONS[0]}`" in older.sentence
    ran(address, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    newer = looked(address)
    assert not newer.is_good
    assert newer.sentence.startswith("the store has schema `9999`")
    ran(address, f"DROP TABLE {VERSION_TABLE}")
    others = looked(address)
    assert not others.is_good and "that is not Fairlead's" in others.sentence


@SERVERS
def test_what_does_not_let_in_is_named(address: StoreAddress) -> None:
    wrong = looked(address, password="hunter2-hunter2")
    assert not wrong.is_good and wrong.sentence.startswith(f"`{address.place}`: ")
    assert wrong.hint == "look at user, password and database"
    assert not looked(address, database="absent").is_good
    away = looked(address, host="127.0.0.1", port="1")
    assert not away.is_good
    assert away.hint == "look at the database server and the network to it"


@pytest.mark.parametrize("engine", ["postgresql"])
def test_a_database_that_has_not_every_letter_is_refused(
    address: StoreAddress, server: DatabaseServer
) -> None:
    ran(address, "CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    found = looked(address, database="narrow")
    assert not found.is_good and found.sentence.endswith("has the encoding `LATIN1`")
    assert "ENCODING 'UTF8'" in found.hint


@pytest.mark.parametrize("engine", ["mariadb"])
def test_an_empty_database_of_another_character_set_is_refused(address: StoreAddress) -> None:
    """One that has Fairlead's tables is right: they name their character set themselves."""
    narrow = f"ALTER DATABASE {address.database} CHARACTER SET latin1"
    ran(address, narrow)
    found = looked(address)
    assert not found.is_good and found.sentence.endswith("has the character set `latin1`")
    assert found.hint == f"`ALTER DATABASE {address.database} CHARACTER SET utf8mb4`"
    ran(address, found.hint.strip("`"))
    assert looked(address).is_good
    migrate(address)
    ran(address, narrow)
    assert looked(address).is_good


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("postgres//u:hunter2@h/d", "the URL of the store names no engine"),
        ("postgresql://u@h", "the URL `postgresql://u@h` names no user, no host or no database"),
        (
            "postgresql://u:hunter2@h/d",
            "the URL of the store contains a password, which other users of this machine may read",
        ),
    ],
)
def test_a_wrong_address_has_a_hint_for_a_page_which_has_no_flags(url: str, sentence: str) -> None:
    found = look_at_store(url, "hunter2")
    assert (found.is_good, found.sentence) == (False, sentence)
    assert found.hint == (
        "write `postgresql://USER@HOST:PORT/DATABASE` or `mysql://USER@HOST:PORT/DATABASE`, and "
        "the password into its own field"
    )
