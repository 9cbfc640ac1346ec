"""A kubeconfig that also has entries of others: what a laptop adds to it, removes from it, and
leaves unchanged.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import to_builtins
from tests.wire.kubeconfig_texts import KUBECTL, WITH_COMMENTS

from fairlead.edge.connection.connection import LaptopPages
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.files.laptop_state import RunningLaptop
from fairlead.errors import FairleadError, OutsideError, UserError
from fairlead.run.laptop_kubeconfig import SharedKubeconfig
from fairlead.settings import LAPTOP_EXTENSION
from fairlead_sim.api.credentials import kubeconfig_entries, make_credentials, render_kubeconfig

CREDENTIALS = make_credentials()
SERVER = "https://127.0.0.1:6443"


def entries(server: str = SERVER) -> dict[str, dict[str, Any]]:
    return kubeconfig_entries(server, CREDENTIALS)


def written(path: Path, server: str = SERVER, *, is_made_current: bool = False) -> SharedKubeconfig:
    shared = SharedKubeconfig(path, is_made_current=is_made_current)
    shared.check()
    shared.write(entries(server))
    return shared


def server_of(path: Path, context: str | None = None) -> str:
    connection = find_connection(str(path), context, env={})
    assert connection is not None
    return connection.server


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(WITH_COMMENTS + "current-context: prod\n")
    return path


def test_the_context_of_production_stays_and_stays_current(config: Path) -> None:
    before = config.read_text()
    shared = written(config)
    assert server_of(config) == "https://prod:6443" and server_of(config, "fairlead") == SERVER
    assert (shared.is_own, shared.opens_the_laptop) == (False, False)
    shared.end()
    assert config.read_text() == before


def test_what_others_wrote_meanwhile_stays_when_the_laptop_ends(config: Path) -> None:
    shared = written(config)
    config.write_text(config.read_text() + "# mine\n")
    shared.end()
    assert config.read_text() == WITH_COMMENTS + "current-context: prod\n# mine\n"


def test_asked_for_it_becomes_the_current_context_and_the_one_before_comes_back(
    config: Path,
) -> None:
    before = config.read_text()
    shared = written(config, is_made_current=True)
    assert server_of(config) == SERVER and shared.opens_the_laptop
    shared.end()
    assert config.read_text() == before


def test_a_killed_laptop_is_followed_by_one_that_replaces_its_entries(config: Path) -> None:
    written(config, "https://127.0.0.1:1")
    shared = written(config)
    assert server_of(config, "fairlead") == SERVER
    shared.end()
    assert yaml.safe_load(config.read_text()) == yaml.safe_load(
        WITH_COMMENTS + "current-context: prod\n"
    )


def test_the_current_context_from_before_a_killed_laptop_comes_back(config: Path) -> None:
    written(config, "https://127.0.0.1:1", is_made_current=True)
    shared = written(config)
    assert server_of(config) == SERVER and shared.opens_the_laptop
    shared.end()
    assert yaml.safe_load(config.read_text()) == yaml.safe_load(
        WITH_COMMENTS + "current-context: prod\n"
    )


def test_a_laptop_that_ends_leaves_the_entries_of_another_one(config: Path) -> None:
    first = written(config, "https://127.0.0.1:1")
    written(config)
    first.end()
    assert server_of(config, "fairlead") == SERVER


def test_a_file_of_our_own_is_written_whole_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "twin"
    first = written(path)
    assert (
        path.read_bytes() == render_kubeconfig(entries())
        and stat.S_IMODE(path.stat().st_mode) == 0o600
    )
    first.end()
    again = written(path, "https://127.0.0.1:2")
    assert (again.is_own, server_of(path)) == (True, "https://127.0.0.1:2")
    again.end()
    assert path.exists() and [each.name for each in path.parent.iterdir()] == ["twin"]


@pytest.mark.parametrize(
    "text",
    [
        "# mine\nkind: Config\n",
        "kind: Config\nextensions:\n- name: mine\n  extension: {a: 1}\n",
    ],
)
def test_what_a_person_wrote_beside_entries_stays_also_after_a_laptop_that_was_killed(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    written(path, "https://127.0.0.1:1")
    shared = written(path)
    assert "mine" in path.read_text() and server_of(path) == SERVER
    shared.end()
    assert "mine" in path.read_text() and "127.0.0.1" not in path.read_text()


def test_an_entry_that_came_into_fairleads_own_file_stays_when_fairleads_go(tmp_path: Path) -> None:
    shared = written(tmp_path / "twin")
    document = json.loads((tmp_path / "twin").read_text())
    document["clusters"].append({"name": "prod", "cluster": {"server": "https://prod:6443"}})
    (tmp_path / "twin").write_text(json.dumps(document))
    shared.end()
    left = json.loads((tmp_path / "twin").read_text())
    assert left["clusters"] == [{"name": "prod", "cluster": {"server": "https://prod:6443"}}]
    assert (left["users"], left["contexts"], left["current-context"]) == ([], [], "")


def test_the_first_context_of_a_file_without_one_is_the_current_one(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("apiVersion: v1\nkind: Config\n# nothing yet\n")
    shared = written(path)
    assert shared.opens_the_laptop and server_of(path) == SERVER
    shared.end()
    assert path.read_text() == "apiVersion: v1\nkind: Config\n# nothing yet\n"


def test_mode_and_link_stay_as_they_were(tmp_path: Path, config: Path) -> None:
    config.chmod(0o640)
    (tmp_path / "link").symlink_to(config)
    shared = written(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and stat.S_IMODE(config.stat().st_mode) == 0o640
    assert server_of(config, "fairlead") == SERVER
    shared.end()
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert sorted(each.name for each in tmp_path.iterdir()) == ["config", "link"]


NAMESAKE = (
    KUBECTL.replace("name: prod", "name: fairlead")
    .replace("cluster: prod", "cluster: fairlead")
    .replace("ann", "fairlead-admin")
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"my thesis", "is a str, not a mapping with clusters, users and contexts"),
        (b"- a\n- b\n", "is a list, not a mapping"),
        (b"clusters: [\n", "line 2: not YAML"),
        (b"clusters: {a: 1}\n", "expected `array | null`, got `object` at `clusters`"),
        (b"\xff\xfe\x00", "is not UTF-8 text (byte 0)"),
        (NAMESAKE.encode(), "has a cluster `fairlead` already, and no laptop wrote it"),
        (
            b"contexts: [{name: fairlead, context: {cluster: prod}}]",
            "has a context `fairlead` already",
        ),
        (
            b"users: [{name: fairlead-admin, user: {token: x}}]",
            "has a user `fairlead-admin` already",
        ),
    ],
)
def test_what_is_no_kubeconfig_or_has_our_names_is_refused_and_left_alone(
    text: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    path.write_bytes(text)
    acts: list[Callable[[SharedKubeconfig], None]] = [
        SharedKubeconfig.check,
        lambda shared: shared.write(entries()),
    ]
    for act in acts:
        with pytest.raises(UserError) as refused:
            act(SharedKubeconfig(path))
        assert (
            message in refused.value.what and str(path) in refused.value.what and refused.value.hint
        )
    assert path.read_bytes() == text and [each.name for each in tmp_path.iterdir()] == ["config"]


def test_a_layout_that_cannot_be_edited_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("kind: Config\ncurrent-context: a\n...\n")
    with pytest.raises(UserError) as refused:
        written(path)
    assert refused.value.what == (
        f"the entries of the laptop cannot be put into kubeconfig `{tmp_path}/config`: it is laid "
        "out in a way that does not let entries be changed alone"
    )
    assert f"KUBECONFIG={path}:FILE" in refused.value.hint
    assert path.read_text() == "kind: Config\ncurrent-context: a\n...\n"


def test_a_directory_or_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UserError) as refused:
            SharedKubeconfig(path).check()
        assert refused.value.what == (
            f"kubeconfig `{path}` cannot be written: it is no regular file"
        )


def test_while_kubectl_holds_its_lock_it_is_waited_for(config: Path) -> None:
    lock = config.with_name("config.lock")
    lock.touch()
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        lock.unlink(missing_ok=True)

    shared = SharedKubeconfig(config, sleep=wait)
    shared.write(entries())
    assert len(waits) == 1 and server_of(config, "fairlead") == SERVER and not lock.exists()


def test_a_lock_that_stays_is_reported_with_its_name_and_nothing_is_written(config: Path) -> None:
    lock, before = config.with_name("config.lock"), config.read_text()
    lock.touch()
    with pytest.raises(OutsideError) as refused:
        SharedKubeconfig(config, sleep=lambda _: None).write(entries())
    assert f"`{lock}` has been there for 2 s and longer" in refused.value.what
    assert lock.exists() and config.read_text() == before


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FairleadError) as caught:
        SharedKubeconfig(Path("/proc/kubeconfig")).write(entries())
    assert (
        caught.value.what
        == "kubeconfig `/proc/kubeconfig` cannot be written: no such file or directory"
    )


def test_the_context_of_another_laptop_that_runs_is_not_taken_from_it(config: Path) -> None:
    pages = LaptopPages(
        console="http://127.0.0.1:8080", gpu_exporter="http://127.0.0.1:9400/metrics"
    )
    SharedKubeconfig(config).write(
        to_builtins(kubeconfig_entries(SERVER, CREDENTIALS, {LAPTOP_EXTENSION: pages}))
    )
    other = RunningLaptop(4711, str(config), pages.gpu_exporter, "http://127.0.0.1:8080/")
    with pytest.raises(UserError, match=r"\(process 4711\)"):
        SharedKubeconfig(config).check([other])
    # the laptop of this context was killed
    SharedKubeconfig(config).check([other._replace(console="http://127.0.0.1:8081/")])
    SharedKubeconfig(config).check()
