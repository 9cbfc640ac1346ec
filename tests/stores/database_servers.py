"""A PostgreSQL and a MariaDB of this machine's Debian packages, each on a port of loopback with its
files in a folder of its own. Neither runs as root.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pg8000.dbapi
import pymysql
from tests.edge.pki import Authority
from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.programs import run_program
from tests.waiting import wait_until

from fairlead.edge.store.address import MYSQL, POSTGRESQL, StoreAddress
from fairlead.settings import LOOPBACK

START_SECONDS = 60.0
OTHER_USER = 65534
USER = "fairlead"


class DatabaseServer(Protocol):
    """`component`: the program, to stop, freeze and start it. `folder`: its databases' files.
    `authority`: PEM file of the authority that signed its certificate; TLS is optional.
    """

    component: Component
    folder: Path
    authority: Path

    def new_database(self, name: str, folder: Path | None = None) -> StoreAddress:
        """An empty database and its address; with `folder` its files lie there."""
        ...

    def start(self) -> None: ...

    def crash(self) -> None:
        """End it as a power cut would, with all its processes."""
        ...

    def end(self) -> None: ...


def without_root(argv: Sequence[str]) -> list[str]:
    """The command as another user, if this is root; it ends with the process that started it."""
    if os.geteuid() != 0:
        return [*argv]
    ids = [f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups"]
    return ["setpriv", *ids, "--", "setpriv", "--pdeathsig", "KILL", "--", *argv]


def give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(folder, OTHER_USER, OTHER_USER)


def _new_home(name: str) -> Path:
    """In memory, where a disk that other tests keep busy does not matter. pytest's own folders are
    closed to other users.
    """
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    home = Path(tempfile.mkdtemp(prefix=f"fairlead-{name}-", dir=memory))
    home.chmod(0o755)
    (home / "data").mkdir()
    give_away(home / "data")
    return home


def _certificate(home: Path) -> tuple[Path, Path, Path]:
    """Authority, certificate and key, which its user alone may read."""
    authority = Authority()
    pair = authority.issue("localhost")
    files = home / "authority.pem", home / "certificate.pem", home / "key.pem"
    pems = (authority.pem, pair.certificate_pem, pair.key_pem)
    for file, pem in zip(files, pems, strict=True):
        file.write_bytes(pem)
    files[2].chmod(0o600)
    give_away(files[2])
    return files


def _run(argv: Sequence[str]) -> None:
    ended = run_program(without_root(argv))
    assert ended.returncode == 0, ended.stdout + ended.stderr


def processes(component: Component) -> list[int]:
    """The program and its children."""
    pid = component.pid
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, listed)]


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def postgresql_program(name: str) -> str:
    """Debian keeps those of each version in a folder of its own, out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else name


class Postgres:
    def __init__(self) -> None:
        home = _new_home("postgresql")
        self.folder = home / "data"
        self.port = free_port()
        self.password = f"pg-{secrets.token_hex(8)}"
        given = home / "password"
        given.write_text(self.password)
        initdb = [postgresql_program("initdb"), f"--pgdata={self.folder}", f"--username={USER}"]
        locale = ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        _run([*initdb, "--auth=scram-sha-256", f"--pwfile={given}", *locale])
        self.authority, certificate, key = _certificate(home)
        server = [postgresql_program("postgres"), f"-D{self.folder}", f"-p{self.port}"]
        options = (
            f"listen_addresses={LOOPBACK}",
            "unix_socket_directories=",
            "fsync=off",
            "dynamic_shared_memory_type=mmap",
            "ssl=on",
            f"ssl_cert_file={certificate}",
            f"ssl_key_file={key}",
        )
        words = [word for each in options for word in ("-c", each)]
        argv = without_root([*server, *words])
        self.component = Component("postgres", argv, home / "log")
        self.start()

    def new_database(self, name: str, folder: Path | None = None) -> StoreAddress:
        place = ""
        if folder is not None:
            self._execute(f"CREATE TABLESPACE {name}_space LOCATION '{folder}'")
            place = f" TABLESPACE {name}_space"
        self._execute(f"CREATE DATABASE {name}{place}")
        return StoreAddress(
            POSTGRESQL,
            user=USER,
            host=LOOPBACK,
            port=self.port,
            database=name,
            password=self.password,
        )

    def start(self) -> None:
        self.component.start()
        self.component.wait_until(self._answers, START_SECONDS)

    def crash(self) -> None:
        """Its processes end by themselves after the first one; a new server waits for none."""
        children = processes(self.component)[1:]
        self.component.kill()
        wait_until("PostgreSQL has not ended", lambda: not any(map(_is_alive, children)))

    def end(self) -> None:
        self.component.stop()
        shutil.rmtree(self.folder.parent)

    def _answers(self) -> bool:
        try:
            self._execute("SELECT 1")
        except (pg8000.dbapi.Error, OSError):
            return False
        return True

    def _execute(self, statement: str) -> None:
        connection = pg8000.dbapi.connect(
            USER, LOOPBACK, "postgres", self.port, self.password, timeout=20
        )
        try:
            connection.autocommit = True
            connection.cursor().execute(statement)
        finally:
            connection.close()


class Mariadb:
    def __init__(self) -> None:
        home = _new_home("mariadb")
        self.folder = home / "data"
        self.port = free_port()
        self.password = f"my-{secrets.token_hex(8)}"
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={self.folder}"]
        _run([*install, "--auth-root-authentication-method=normal", "--skip-test-db"])
        server = [shutil.which("mariadbd") or "/usr/sbin/mariadbd", "--no-defaults"]
        places = [f"--datadir={self.folder}", f"--socket={self.folder}/socket"]
        access = [f"--bind-address={LOOPBACK}", f"--port={self.port}"]
        cheap = ["--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=32M"]
        self.authority, certificate, key = _certificate(home)
        tls = [f"--ssl-cert={certificate}", f"--ssl-key={key}"]
        argv = without_root([*server, *places, *access, *cheap, *tls])
        self.component = Component("mariadbd", argv, home / "log")
        self.component.start()
        self.component.wait_until(self._answers, START_SECONDS)
        self._execute(f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{self.password}'")

    def new_database(self, name: str, folder: Path | None = None) -> StoreAddress:
        if folder is None:
            self._execute(f"CREATE DATABASE {name}")
        else:
            (self.folder / name).symlink_to(folder)
        self._execute(f"GRANT ALL ON {name}.* TO '{USER}'@'%'")
        return StoreAddress(
            MYSQL,
            user=USER,
            host=LOOPBACK,
            port=self.port,
            database=name,
            password=self.password,
        )

    def start(self) -> None:
        self.component.start()
        self.component.wait_until(self._answers, START_SECONDS)

    def crash(self) -> None:
        self.component.kill()

    def end(self) -> None:
        self.component.kill()
        shutil.rmtree(self.folder.parent)

    def _answers(self) -> bool:
        try:
            self._execute("SELECT 1")
        except (pymysql.Error, OSError):
            return False
        return True

    def _execute(self, statement: str) -> None:
        socket = str(self.folder / "socket")
        connection = pymysql.connect(
            unix_socket=socket, user="root", connect_timeout=20, read_timeout=20
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
            connection.commit()
        finally:
            connection.close()


def is_installed(engine: str) -> bool:
    program = {"postgresql": postgresql_program("postgres"), "mariadb": "mariadb-install-db"}
    return engine == "sqlite" or shutil.which(program[engine]) is not None
