"""`fairlead store`: what an operator types and reads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.arena import environment, run_main
from tests.programs import run_program

from fairlead.edge.store.address import store_address
from fairlead.edge.store.migrations import versions
from fairlead.errors import UserError

SCHEMA = max(path.name[1:5] for path in Path(versions.__path__[0]).glob("v*.py"))
"""Of the newest step that is written."""


def fairlead(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_main("fairlead", arguments, environment(home))


def url(folder: Path, name: str) -> str:
    return f"sqlite:///{folder / name}"


def test_a_store_is_made_checked_and_carried_to_another(tmp_path: Path) -> None:
    one, other = url(tmp_path, "one"), url(tmp_path, "other")
    made = fairlead(tmp_path, "store", "migrate", "--store", one)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout == (
        f"the store goes from schema `empty` to `{SCHEMA}`\nthe store has schema `{SCHEMA}`\n"
    )
    again = fairlead(tmp_path, "store", "migrate", "--store", one)
    assert again.stdout == f"the store has schema `{SCHEMA}`\n"
    checked = fairlead(tmp_path, "store", "check", "--store", one)
    lines = dict(line.split(None, 1) for line in checked.stdout.splitlines() if "rows" not in line)
    assert lines["engine:"] == "sqlite" and lines["store:"] == str(tmp_path / "one")
    assert re.search(r"^rows of audit: +0$", checked.stdout, re.MULTILINE)
    exported = fairlead(tmp_path, "store", "export", "--store", one)
    assert exported.stdout.endswith('\n{"rows":0}\n')
    (tmp_path / "lines").write_text(exported.stdout)
    imported = fairlead(tmp_path, "store", "import", str(tmp_path / "lines"), "--store", other)
    assert (imported.returncode, imported.stdout) == (0, "imported 0 rows\n")
    assert fairlead(tmp_path, "store", "export", "--store", other).stdout == exported.stdout


def test_a_store_that_was_not_made_is_status_1_with_the_command(tmp_path: Path) -> None:
    ended = fairlead(tmp_path, "store", "check", "--store", url(tmp_path, "absent"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"error: the store `{tmp_path}/absent` cannot be opened: No such file or directory\n"
        "hint: name the file of a store, or make one with `fairlead store migrate`\n"
    )


def test_a_server_that_does_not_answer_is_status_2_without_the_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("not-printed\n")
    for engine in ("postgresql", "mysql"):
        named = ("--store", f"{engine}://f@127.0.0.1:1/f")
        password = ("--store-password-file", str(tmp_path / "password"))
        ended = fairlead(tmp_path, "store", "check", *named, *password)
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"error: `{engine}://127.0.0.1:1/f`: ")
        hint = "hint: look at the database server and the network to it"
        assert "Connection refused" in ended.stderr and ended.stderr.splitlines()[1:] == [hint]
        assert "not-printed" not in ended.stderr + ended.stdout


BAD_URLS = {
    "mysql://f:secret@db/f": (
        "the URL of the store contains a password, which other users of this machine may read"
    ),
    "oracle://f@db/f": "`oracle` is no engine of a store",
    "": "the URL of the store names no engine",
    "store.sqlite": "the URL of the store names no engine",
    "postgresql://db/f": "the URL `postgresql://db/f` names no user, no host or no database",
    "postgresql://f@db": "the URL `postgresql://f@db` names no user, no host or no database",
    "postgresql://f@db/f?sslmode=off": (
        "the URL of the store has the unknown parameter `sslmode=off`"
    ),
    "postgresql://f@db:port/f": "the URL of the store is malformed",
    "sqlite://": "`sqlite://` names no file",
    "sqlite://host/file": "`sqlite://host/file` names no file",
    "sqlite:///": "`sqlite:///` names no file",
    "sqlite:////a?b": "`sqlite:////a?b` names no file",
}


@pytest.mark.parametrize("bad", BAD_URLS)
def test_what_is_no_url_of_a_store_is_refused_with_the_forms(bad: str) -> None:
    with pytest.raises(UserError) as caught:
        store_address(bad)
    assert caught.value.what == BAD_URLS[bad]
    assert caught.value.hint and "secret" not in str(caught.value)


def test_an_address_has_the_parts_of_its_url(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("p w\r\n")
    found = store_address("mysql://a%40b@[::1]/d%2Fe?tls=verify", str(tmp_path / "password"))
    assert (found.user, found.host, found.port, found.database) == ("a@b", "::1", 3306, "d/e")
    assert (found.password, found.is_encrypted) == ("p w", True)
    assert found.place == "mysql://a@b@[::1]:3306/d/e"
    assert not store_address("postgresql://f@db/f").is_encrypted
    assert store_address("sqlite:////var/lib/store%20one").file == "/var/lib/store one"


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    with pytest.raises(UserError) as caught:
        store_address("mysql://f@db/f", absent)
    assert caught.value.what == (
        f"the password file `{absent}` cannot be read: No such file or directory"
    )
    with pytest.raises(UserError) as caught:
        store_address(f"sqlite:///{absent}", password_file=absent)
    assert caught.value.what == "SQLite has no password and no authority"


def test_the_command_line_loads_no_sql(tmp_path: Path) -> None:
    """Help and every other verb begin as fast as without a store."""
    code = (
        "import sys; from fairlead.run.main import main; "
        "main('fairlead', ['store', 'check', '--help']); "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('sqlalchemy', 'alembic', 'pg8000', 'pymysql')])"
    )
    ended = run_program([sys.executable, "-c", code], env=environment(tmp_path))
    assert ended.stdout.splitlines()[-1] == "[]", ended.stdout + ended.stderr
