"""`fairlead doctor --bundle FILE`: what is in it, which logs, and that no planted secret is."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli import command
from tests.cli.command import run_command
from tests.rules.installation.doctor_facts import AFTER

from fairlead.cli.snapshot.jobs import SnapshotJobs
from fairlead.errors import OutsideError, UserError
from fairlead.model.event import Event
from fairlead.model.installed.facts import PodFact, Unread
from fairlead.model.pod import Container, ContainerState, ContainerStatus, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.installation.logged_pods import MOST_PODS, MOST_PODS_OF_A_PART, wanted_logs

SECRET = "planted"
POD = Pod(
    "fairlead-system",
    "console-1",
    containers=(Container("console"),),
    statuses=(
        ContainerStatus(
            "console",
            restarts=2,
            state=ContainerState.WAITING,
            message=f"back-off; last: password={SECRET}",
        ),
    ),
)
FACT = PodFact("fairlead-system", "console-1", "fairlead-console", restarts=2)
SNAPSHOT = ClusterSnapshot(
    pods=(POD, Pod("team-a", "train-1", containers=(Container("train"),))),
    events=(
        Event(
            "Pod", "team-a", "train-1", message=f"denied: https://ann:{SECRET}@registry.example/x"
        ),
    ),
)
FACTS = replace(AFTER, pods=(FACT,))


class Logs(SnapshotJobs):
    """Jobs of which each log has a secret; `asked` are the questions."""

    asked: list[tuple[str, str, Mapping[str, str | int]]] = []

    def log(self, namespace: str, pod: str, options: Mapping[str, str | int]) -> Iterator[bytes]:
        self.asked.append((namespace, pod, options))
        if "previous" in options:
            raise OutsideError("kubernetes", f"previous terminated container has token={SECRET}")
        return iter((b"2026-11-28T02:00:00Z started\nHF_TO", f"KEN={SECRET}\n".encode()))


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> type[Logs]:
    monkeypatch.setattr(Logs, "asked", [])
    monkeypatch.setattr(command, "SnapshotJobs", Logs)
    return Logs


def files(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def bundle(path: Path, **more: Any) -> dict[str, bytes]:
    run_command(
        f"doctor --bundle {path} --set prometheus=http://ann:{SECRET}@prometheus.example:9090",
        more.get("snapshot", SNAPSHOT),
        "fairlead",
        facts=more.get("facts", FACTS),
    )
    return files(path)


def test_the_bundle_has_what_a_helper_needs(tmp_path: Path, logs: type[Logs]) -> None:
    found = bundle(tmp_path / "b.zip")
    assert set(found) == {
        *("README.txt", "doctor.json", "versions.json", "values.yaml", "cluster.snapshot"),
        *("logs/fairlead-system/console-1/console.log", "unread.txt"),
    }
    assert {each["check"] for each in json.loads(found["doctor.json"])["items"]} >= {"server"}
    assert json.loads(found["versions.json"])["kubernetes"] == FACTS.server.version
    assert b"prometheus.example:9090" in found["values.yaml"]
    assert found["logs/fairlead-system/console-1/console.log"].startswith(b"2026-11-28T02:00:00Z")
    assert b"console.previous.log: previous terminated container" in found["unread.txt"]
    assert [(namespace, pod) for namespace, pod, _ in logs.asked] == [
        ("fairlead-system", "console-1")
    ] * 2
    assert (tmp_path / "b.zip").stat().st_mode & 0o077 == 0


def test_no_planted_secret_is_in_it(tmp_path: Path, logs: type[Logs]) -> None:
    import gzip

    found = bundle(tmp_path / "b.zip")
    found["cluster.snapshot"] = gzip.decompress(found["cluster.snapshot"])
    assert [name for name, data in found.items() if SECRET.encode() in data] == []
    assert b"train-1" in found["cluster.snapshot"]


def test_the_bundle_is_read_as_a_snapshot(tmp_path: Path, logs: type[Logs]) -> None:
    path = tmp_path / "b.zip"
    bundle(path)
    shown = run_command(f"snapshot show {path}", ClusterSnapshot(), "fairlead")
    assert "Pods:" in shown.out and "2 (" in shown.out
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError) as caught:
        run_command(f"snapshot show {path}", ClusterSnapshot(), "fairlead")
    assert caught.value.what == f"bundle `{tmp_path}/b.zip` is damaged: File is not a zip file"


def test_what_cannot_be_read_is_noted(tmp_path: Path, logs: type[Logs]) -> None:
    found = bundle(tmp_path / "b.zip", facts=replace(FACTS, pods=Unread("pods is forbidden")))
    assert b"logs: pods is forbidden" in found["unread.txt"]
    assert not any(name.startswith("logs/") for name in found)


def test_another_programs_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    path.write_bytes(b"PK\x03\x04 of another program")
    with pytest.raises(UserError, match=r"mine\.zip"):
        run_command(f"doctor --bundle {path}", SNAPSHOT, "fairlead", facts=FACTS)
    assert path.read_bytes() == b"PK\x03\x04 of another program"


def test_troubled_pods_come_first_and_there_are_few_of_a_part() -> None:
    pods = [
        Pod("s", f"{part}-{n}", containers=(Container("c"),))
        for part in "abcdefghijklmnop"
        for n in range(9)
    ]
    facts = [
        PodFact(pod.namespace, pod.name, pod.name[0], is_ready=pod.name != "b-8") for pod in pods
    ]
    wanted = wanted_logs(facts, pods)
    assert wanted[0].pod == "b-8"
    assert len(wanted) == MOST_PODS
    assert {sum(each.pod[0] == part for each in wanted) for part in "abc"} == {MOST_PODS_OF_A_PART}
    assert wanted_logs([PodFact("s", "gone", "a")], pods) == []
    assert wanted_logs([PodFact("s", "a-1", "")], pods) == []
