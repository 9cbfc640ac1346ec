"""Each test over each engine: `-k sqlite` needs no other program.

Servers start with the first test that needs them; each test has a database of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.stores.database_servers import DatabaseServer, Mariadb, Postgres, is_installed

from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.sql_store import SqlStore

ENGINES = ("sqlite", "postgresql", "mariadb")
_STARTED: dict[str, DatabaseServer] = {}
_numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine" in metafunc.fixturenames:
        chosen = [mark.args for mark in metafunc.definition.iter_markers("parametrize")]
        if not any(names[0] == "engine" for names in chosen):
            metafunc.parametrize("engine", ENGINES)


@pytest.fixture(scope="session", autouse=True)
def _servers() -> Iterator[None]:
    yield
    for each in _STARTED.values():
        each.end()


@pytest.fixture
def server(engine: str) -> DatabaseServer:
    """The engine's server. A test that stops it must start it again."""
    if not is_installed(engine):
        pytest.skip(f"{engine} is not installed")
    if engine not in _STARTED:
        _STARTED[engine] = Postgres() if engine == "postgresql" else Mariadb()
    found = _STARTED[engine]
    if not found.component.is_running:
        found.start()
    return found


@pytest.fixture
def new_address(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[[], StoreAddress]:
    """Addresses of empty stores."""

    def make() -> StoreAddress:
        name = f"store{next(_numbers)}"
        if engine == "sqlite":
            return StoreAddress(SQLITE, file=str(tmp_path / name))
        server: DatabaseServer = request.getfixturevalue("server")
        return server.new_database(name)

    return make


@pytest.fixture
def address(new_address: Callable[[], StoreAddress]) -> StoreAddress:
    return new_address()


@pytest.fixture
async def store(address: StoreAddress) -> AsyncIterator[SqlStore]:
    found = await open_store(address)
    yield found
    await found.close()
