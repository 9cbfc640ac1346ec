"""A world in a state directory: killed at any moment, it opens again with everything that it had
answered.
"""

from __future__ import annotations

import gzip
import http.client
import importlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.programs import run_program
from tests.waiting import HANG_SECONDS, wait_until

from fairlead.edge.files.world_file import FILE, WorldFile
from fairlead.errors import OutsideError, UserError
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.run.initial_worlds import scenario_world, snapshot_world
from fairlead.run.kept_world import KeptWorld, open_world
from fairlead.wire.files.snapshot_file import SavedSnapshot, render_snapshot
from fairlead.wire.kube.time import parse_time
from fairlead_sim.objects.resources import CONFIG_MAPS, PODS
from fairlead_sim.world.snapshot import take_objects, take_snapshot
from fairlead_sim.world.world import World

KILLS = pytest.mark.parametrize("kills", [2, pytest.param(22, marks=pytest.mark.long)])
SEED = 5
START_SECONDS = 60.0
PROGRAM = Path(__file__).with_name("kept_server.py")
Object = dict[str, Any]


class KeptServer:
    """A server process and a client for it."""

    def __init__(self, directory: Path, ready_file: Path) -> None:
        ready_file.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(directory), str(ready_file), str(SEED)]
        )
        wait_until(
            "the server starts",
            lambda: ready_file.exists() or self.process.poll() is not None,
            START_SECONDS,
            0.01,
        )
        reported = json.loads(ready_file.read_text())
        self.version = int(reported["version"])
        self._headers = {
            "authorization": f"Bearer {reported['token']}",
            "content-type": "application/merge-patch+json",
        }
        self._http = http.client.HTTPConnection("127.0.0.1", reported["port"], timeout=HANG_SECONDS)

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        """Raises OSError or HTTPException when the server dies before its answer is whole."""
        headers = (
            self._headers
            if method == "PATCH"
            else {**self._headers, "content-type": "application/json"}
        )
        self._http.request(
            method,
            f"/api/v1/namespaces/research/{path}",
            json.dumps(body) if body else None,
            headers,
        )
        answer = self._http.getresponse()
        return answer.status, json.loads(answer.read())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._http.close()


class Writer:
    """Creates, patches and deletes ConfigMaps and Pods, and remembers the answers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self.there: dict[str, Object] = {}
        self.gone: set[str] = set()
        self.doubtful: set[str] = set()
        self.version = 0

    def write(self, server: KeptServer) -> None:
        """One request. Without an answer its outcome is doubtful: it may have been carried out."""
        choice = self._random.random()
        known = [path for path in self.there if path not in self.doubtful]
        if choice < 0.5 or not known:
            self._count += 1
            plural, obj = (
                ("pods", pod(self._count))
                if self._count % 4 == 0
                else ("configmaps", config_map(self._count))
            )
            path = f"{plural}/{obj['metadata']['name']}"
            self._asked(path, server, "POST", plural, obj)
        elif choice < 0.8:
            path = self._random.choice(known)
            self._asked(
                path,
                server,
                "PATCH",
                path,
                {"metadata": {"labels": {"tried": str(self._random.random())[2:]}}},
            )
        else:
            path = self._random.choice(known)
            self._asked(path, server, "DELETE", f"{path}?gracePeriodSeconds=0")

    def _asked(
        self, path: str, server: KeptServer, method: str, target: str, body: Object | None = None
    ) -> None:
        self.doubtful.add(path)
        status, answer = server.ask(method, target, body)
        assert status in (200, 201), answer
        self.doubtful.discard(path)
        if method == "DELETE":
            self.there.pop(path)
            self.gone.add(path)
        else:
            self.there[path] = answer
            self.version = max(self.version, int(answer["metadata"]["resourceVersion"]))

    def check(self, server: KeptServer) -> None:
        assert server.version >= self.version
        for plural in ("configmaps", "pods"):
            status, found = server.ask("GET", plural)
            assert status == 200
            assert int(found["metadata"]["resourceVersion"]) >= self.version
            now = {
                f"{plural}/{item['metadata']['name']}": item["metadata"] for item in found["items"]
            }
            mine = {
                path: obj["metadata"] for path, obj in self.there.items() if path.startswith(plural)
            }
            for path, metadata in mine.items():
                if path not in self.doubtful:
                    assert path in now, f"{path} was answered and is lost"
                    assert now[path]["uid"] == metadata["uid"]
                    assert now[path].get("labels") == metadata.get("labels"), path
            assert not {path for path in self.gone if path not in self.doubtful} & now.keys(), (
                "a deleted object is back"
            )


def config_map(number: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"c-{number}"},
        "data": {"number": str(number)},
    }


def pod(number: int) -> Object:
    containers = [{"name": "main", "image": "train:1h"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p-{number}"},
        "spec": {"containers": containers},
    }


@KILLS
def test_killed_at_any_moment_nothing_that_was_answered_is_lost(tmp_path: Path, kills: int) -> None:
    moments, writer = random.Random(SEED), Writer(SEED)
    for _ in range(kills):
        server = KeptServer(tmp_path / "state", tmp_path / "ready.json")
        try:
            writer.check(server)
            for _ in range(12):  # a busy machine writes little in the time before the kill
                writer.write(server)
            killer = subprocess.Popen(
                [
                    "sh",
                    "-c",
                    f"sleep {moments.uniform(0.02, 0.5):.3f}; kill -9 {server.process.pid}",
                ]
            )
            with pytest.raises((OSError, http.client.HTTPException)):
                while True:
                    writer.write(server)
            killer.wait()
        finally:
            server.kill()
    server = KeptServer(tmp_path / "state", tmp_path / "ready.json")
    writer.check(server)
    server.kill()
    assert len(writer.there) > kills and len(writer.gone) > kills // 2, (
        "the test hardly wrote anything"
    )


# --- one process ----------------------------------------------------------------------------------


def opened(directory: Path, scenario: str | None = "empty", seed: int | None = None) -> KeptWorld:
    return open_world(directory, scenario_world(scenario) if scenario else None, seed)


def closed(directory: Path) -> Path:
    """A directory with a world whose process has ended; returns the path of its file."""
    opened(directory).close()
    return directory / FILE


def refused(act: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(UserError) as caught:
        act()
    assert caught.value.hint
    return caught.value.what, caught.value.hint


def test_a_world_goes_on_with_its_own_scenario_and_seed_when_no_others_are_named(
    tmp_path: Path,
) -> None:
    first = opened(tmp_path, "empty", 7)
    uuids = [card.uuid for card in first.world.devices.cards("gpu-1")]
    credentials = first.credentials
    first.close()
    second = opened(tmp_path, None)
    assert second.is_restored and second.origin == "scenario empty" and second.world.seed == 7
    assert [card.uuid for card in second.world.devices.cards("gpu-1")] == uuids
    assert second.credentials == credentials, "who was let in before is let in again"
    assert abs(second.world.clock.now() - time.time()) < 60
    second.close()


def test_a_clock_that_is_set_back_an_hour_or_most_of_a_day_locks_no_user_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(tmp_path)
    first.close()
    certificates = [
        x509.load_pem_x509_certificate(pem)
        for pem in (first.credentials.server, first.credentials.authority)
    ]
    now = time.time()
    assert all(each.not_valid_before_utc.timestamp() < now - 23.9 * 3600 for each in certificates)
    monkeypatch.setattr("fairlead.run.kept_world.time.time", lambda: now - 23 * 3600)
    second = opened(tmp_path)
    assert second.is_restored and second.credentials == first.credentials
    second.close()


@pytest.mark.parametrize("start", ["the first", "a later one"])
def test_a_world_begins_at_the_present_however_long_its_start_takes(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an earlier version objects were too old by the duration of the start: on a real server
    `creationTimestamp` is the clock's time.
    """
    if start == "a later one":
        closed(tmp_path)
    real, late = time.time, [0.0]

    def slow(make: Callable[..., World]) -> Callable[..., World]:
        def made(*asked: Any) -> World:
            world = make(*asked)
            late[0] += 22.0
            return world

        return made

    for name in (
        "fairlead.run.initial_worlds.sharing_world",
        "fairlead.run.kept_world.resumed_world",
    ):
        monkeypatch.setattr(
            name,
            slow(
                getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2])
            ),
        )
    monkeypatch.setattr("fairlead.run.kept_world.time.time", lambda: real() + late[0])
    world = opened(tmp_path)
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "research"},
    }
    created = parse_time(world.world.cluster.create(body)["metadata"]["creationTimestamp"])
    assert late[0] >= 22.0 and time.time() - created < 20.0
    world.close()


def test_a_clock_that_is_further_behind_is_reported_so_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = closed(tmp_path)
    before, now = path.read_bytes(), time.time()
    monkeypatch.setattr("fairlead.run.kept_world.time.time", lambda: now - 3 * 86400)
    what, hint = refused(lambda: opened(tmp_path))
    behind, begins = (
        time.strftime("%Y-%m-%dT%H:", time.gmtime(now - days * 86400)) for days in (3, 1)
    )
    assert (
        what.startswith(f"this machine's clock is behind: it shows {behind}")
        and f" is valid from {begins}" in what
    )
    assert hint.startswith("set the clock") and path.read_bytes() == before


def test_what_the_world_does_by_itself_is_saved_with_the_next_save(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.world.cluster.create({**pod(1), "metadata": {"name": "p", "namespace": "research"}})
    first.world.run_until(first.world.clock.now() + 60)
    first.save()
    running = first.world.cluster.get(PODS, "research", "p")
    first.file.close()  # like a kill: no last save
    second = opened(tmp_path)
    assert second.world.cluster.get(PODS, "research", "p") == running
    second.close()


def test_a_name_that_was_deleted_and_given_again_is_the_new_object(tmp_path: Path) -> None:
    first = opened(tmp_path)
    named = {**config_map(1), "metadata": {"name": "c", "namespace": "research"}}
    first.world.cluster.create(named)
    first.save()
    first.world.cluster.delete(CONFIG_MAPS, "research", "c")
    uid = first.world.cluster.create(named)["metadata"]["uid"]
    first.close()
    second = opened(tmp_path)
    found = second.world.cluster.get(CONFIG_MAPS, "research", "c")
    assert found is not None and found["metadata"]["uid"] == uid
    second.close()


def test_versions_that_were_handed_out_and_lost_are_not_handed_out_again(tmp_path: Path) -> None:
    first = opened(tmp_path)
    named = {**config_map(1), "metadata": {"name": "c", "namespace": "research"}}
    first.world.cluster.create(named)
    for number in range(120_000):  # more than are reserved at once, in one go, without a save
        first.world.cluster.mutate(
            CONFIG_MAPS,
            "research",
            "c",
            lambda old, number=number: {**old, "data": {"n": str(number)}},
        )  # type: ignore[misc]
    lost = first.world.cluster.resource_version
    first.file.close()
    second = opened(tmp_path)
    assert second.world.cluster.resource_version >= lost
    assert second.world.cluster.get(CONFIG_MAPS, "research", "c") is None, "it was never saved"
    second.close()


def test_another_scenario_or_seed_than_the_one_that_is_kept_is_refused(tmp_path: Path) -> None:
    closed(tmp_path)
    what, hint = refused(lambda: opened(tmp_path, "default"))
    assert what == (
        f"state directory `{tmp_path}` keeps a world of scenario empty, not of scenario default"
    )
    assert hint == (
        "leave out --scenario to go on with it, or give another directory with --state-dir"
    )
    what, _ = refused(lambda: opened(tmp_path, None, 3))
    assert what == (
        f"state directory `{tmp_path}` keeps a world of scenario empty with seed 0, not 3"
    )


def test_a_scenario_file_that_changed_meanwhile_is_refused_and_not_needed(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "T"\n[[node_pools]]\nname = "a"\n')
    opened(tmp_path / "state", str(file)).close()
    file.write_text('title = "T"\n[[node_pools]]\nname = "b"\n')
    what, _ = refused(lambda: opened(tmp_path / "state", str(file)))
    assert what.endswith(f"keeps a world of scenario {file} as it was before it changed")
    file.unlink()
    again = opened(tmp_path / "state", None)
    assert [
        node["metadata"]["name"]
        for node in again.world.cluster.list(again.world.cluster.served("v1", "Node"))
    ] == ["a-1"]  # type: ignore[arg-type]
    again.close()


def test_two_laptops_do_not_share_a_directory(tmp_path: Path) -> None:
    first = opened(tmp_path)
    script = (
        "from pathlib import Path; from fairlead.edge.files.world_file import WorldFile; "
        f"WorldFile(Path({str(tmp_path)!r}))"
    )
    second = run_program([sys.executable, "-c", script])
    assert "another laptop keeps its world there" in second.stderr
    first.world.cluster.create(
        {**config_map(1), "metadata": {"name": "c", "namespace": "research"}}
    )
    first.save()
    first.close()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda path: path.write_bytes(b"not a database, but long enough to be looked at" * 40),
            "it is no database",
        ),
        (lambda path: os.truncate(path, path.stat().st_size // 2), "it is damaged or cut off"),
        (lambda path: os.truncate(path, 4096), "damaged"),
        (lambda path: os.truncate(path, 50), "it is damaged or cut off"),
        (lambda path: os.truncate(path, 0), "is empty"),
        (lambda path: overwrite(path, 5000, b"\xff" * 9000), "damaged"),
        (
            lambda path: reported(path, "PRAGMA user_version = 2"),
            "has format 2, which is newer than this program's 1",
        ),
        (
            lambda path: reported(path, "PRAGMA application_id = 0"),
            "is a database of another program",
        ),
        (
            lambda path: reported(path, "UPDATE world SET header = CAST('nonsense' AS BLOB)"),
            "is damaged: JSON is malformed",
        ),
        (
            lambda path: reported(path, "UPDATE world SET header = CAST('{}' AS BLOB)"),
            "is damaged: Object missing required field",
        ),
        (lambda path: reported(path, "DELETE FROM world"), "is damaged: it has no header"),
        (
            lambda path: reported(
                path, "UPDATE objects SET body = CAST('{}' AS BLOB) WHERE id = 3"
            ),
            "is damaged: an object lacks its `apiVersion`",
        ),
        (
            lambda path: reported(
                path, "UPDATE objects SET body = CAST('[1]' AS BLOB) WHERE id = 3"
            ),
            "is damaged: an object is no object: `[1]`",
        ),
        (lambda path: reported(path, UNKNOWN_KIND), 'is damaged: no kind "Wodget" is registered'),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be opened: is a directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_and_left_alone(
    spoil: Callable[[Path], object], words: str, tmp_path: Path
) -> None:
    path = closed(tmp_path)
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    what, _ = refused(lambda: opened(tmp_path))
    assert words in what and str(path) in what
    assert (path.read_bytes() if path.is_file() else b"") == before


UNKNOWN_KIND = """UPDATE objects
 SET body = CAST(replace(CAST(body AS TEXT), '"kind":"Node"', '"kind":"Wodget"') AS BLOB)
 WHERE resource = 'nodes'"""


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def reported(path: Path, statement: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(statement)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


@pytest.mark.parametrize("place", ["/proc/fairlead", "/dev/null/state"])
def test_a_directory_that_cannot_be_written_is_refused(place: str) -> None:
    what, hint = refused(lambda: opened(Path(place)))
    assert what.startswith(f"world file `{place}/{FILE}` cannot be opened: ")
    assert hint == "give another directory with --state-dir"


def test_a_disk_that_is_full_takes_no_answer_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections: list[sqlite3.Connection] = []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3,
        "connect",
        lambda *where, **how: connections.append(connect(*where, **how)) or connections[-1],
    )
    kept = opened(tmp_path)
    [sql] = connections
    pages = sql.execute("PRAGMA page_count").fetchone()[0]
    sql.execute(f"PRAGMA max_page_count = {pages}")
    large = {
        **config_map(1),
        "metadata": {"name": "c", "namespace": "research"},
        "data": {"x": "y" * 100_000},
    }
    kept.world.cluster.create(large)
    with pytest.raises(OutsideError) as caught:
        kept.save()
    assert caught.value.what == (
        f"world file `{tmp_path / FILE}` cannot be written: the disk is full"
    )
    assert caught.value.hint == "free some space"
    sql.execute(f"PRAGMA max_page_count = {pages + 1000}")
    kept.save()
    kept.file.close()
    again = opened(tmp_path)
    assert again.world.cluster.get(CONFIG_MAPS, "research", "c") is not None
    again.close()


def test_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    assert closed(tmp_path / "new" / "directory").stat().st_mode & 0o777 == 0o600


def test_without_changes_nothing_is_written(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.world.clock.advance_to(kept.world.clock.now() + 1)
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    kept.save()
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before
    kept.close()


def test_a_file_that_was_never_finished_is_a_new_one(tmp_path: Path) -> None:
    WorldFile(tmp_path).close()  # a kill during the history, before the first save
    kept = opened(tmp_path)
    assert not kept.is_restored
    kept.close()


# --- from a snapshot ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot file of a small simulated cluster with one pod."""
    world = scenario_world("empty").world(0)
    world.cluster.create({**pod(1), "metadata": {"name": "p", "namespace": "research"}})
    world.run_until(world.clock.now() + 60)
    path = tmp_path_factory.mktemp("snapshot") / "empty.snapshot"
    path.write_bytes(
        render_snapshot(
            SavedSnapshot(
                take_snapshot(world), world.clock.now(), objects=tuple(take_objects(world))
            )
        )
    )
    return path


def test_a_world_from_a_snapshot_can_be_kept_and_stays_in_its_time(
    snapshot: Path, tmp_path: Path
) -> None:
    first = open_world(tmp_path, snapshot_world(str(snapshot)), None)
    assert first.origin == f"snapshot {snapshot}"
    first.world.cluster.delete(PODS, "research", "p")
    first.world.run_until(first.world.clock.now() + 60)
    stopped = first.world.clock.now()
    first.close()
    for asked in (None, snapshot_world(str(snapshot))):
        again = open_world(tmp_path, asked, None)
        assert again.world.clock.now() == stopped
        assert again.world.cluster.get(PODS, "research", "p") is None
        again.close()
    what, hint = refused(lambda: opened(tmp_path, "empty"))
    assert what == (
        f"state directory `{tmp_path}` keeps a world of snapshot {snapshot}, not of scenario empty"
    )
    assert hint == (
        "leave out --scenario to go on with it, or give another directory with --state-dir"
    )


def test_another_snapshot_than_the_kept_one_is_refused(snapshot: Path, tmp_path: Path) -> None:
    open_world(tmp_path, snapshot_world(str(snapshot)), None).close()
    other = tmp_path / "other.snapshot"
    other.write_bytes(render_snapshot(SavedSnapshot(ClusterSnapshot(), objects=())))
    what, hint = refused(lambda: open_world(tmp_path, snapshot_world(str(other)), None))
    assert what == (
        f"state directory `{tmp_path}` keeps a world of snapshot {snapshot}, not of snapshot "
        f"{other}"
    )
    assert hint.startswith("leave out --from-snapshot to go on with it")


def test_a_file_without_objects_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "old.snapshot"
    old.write_bytes(render_snapshot(SavedSnapshot(ClusterSnapshot(), version=1)))
    what, hint = refused(lambda: snapshot_world(str(old)))
    assert what == (
        f"`{old}` has snapshot version 1: it can be shown, but no cluster can start from it"
    )
    assert hint == "write a new one with `fairlead snapshot save FILE`"


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([{"kind": "Pod"}], "an object lacks its `apiVersion`"),
        (
            [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}}],
            "an object lacks its `creationTimestamp`",
        ),
        (
            [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "p", "uid": "u", "creationTimestamp": "today"},
                }
            ],
            "Invalid isoformat",
        ),
        ([3], "Expected `object`, got `int`"),
    ],
)
def test_objects_that_make_no_sense_are_a_damaged_file(
    objects: list[Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    document = {"format": "fairlead.io/snapshot", "version": 2, "snapshot": {}, "objects": objects}
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    what, _ = refused(lambda: snapshot_world(str(path)).world(0))
    assert what.startswith(f"snapshot `{path}` is damaged: ") and words in what
