"""Which namespace, context and kubeconfig file `arena` uses.

See docs/spec/arena-cli.md#choice-of-the-cluster.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.arena import arena
from tests.cli.jobs.scripted_jobs import collection, listed, script
from tests.edge.scripted import Reply, ScriptedServer, Stream

PLACES = ("default", "of-context", "of-file", "of-flag")


def answers() -> dict[str, list[Reply | Stream]]:
    """A cluster without jobs in any of the namespaces."""
    steps = script()
    for place in PLACES:
        steps |= {
            collection(kind, place): [listed([])] for kind in ("mpijobs", "tfjobs", "pytorchjobs")
        }
        steps[f"/api/v1/namespaces/{place}/pods"] = [listed([])]
    return steps


def config(path: Path, server: str, *contexts: str, namespace: str = "") -> Path:
    """A kubeconfig with these contexts; the first is the current one."""
    inner = {"cluster": path.name, **({"namespace": namespace} if namespace else {})}
    document = {
        "clusters": [{"name": path.name, "cluster": {"server": server}}],
        "contexts": [{"name": name, "context": inner} for name in contexts],
        "current-context": contexts[0],
    }
    path.write_text(json.dumps(document))
    return path


def asked(server: ScriptedServer) -> set[str]:
    """The namespaces in which jobs were listed."""
    return {
        each.path.split("/namespaces/")[1].split("/")[0]
        for each in server.seen
        if each.path.endswith("/mpijobs")
    }


@pytest.mark.parametrize(
    ("context", "file", "flag", "expected"),
    [
        ("", "", "", "default"),
        ("of-context", "", "", "of-context"),
        ("of-context", "of-file", "", "of-file"),
        ("of-context", "of-file", "of-flag", "of-flag"),
    ],
)
def test_the_flag_then_the_file_then_the_context(
    context: str, file: str, flag: str, expected: str, tmp_path: Path
) -> None:
    settings = tmp_path / "arena.config"
    settings.write_text(f"namespace={file}\n" if file else "")
    with ScriptedServer(answers()) as server:
        path = config(tmp_path / "kube", server.url, "one", namespace=context)
        done = arena(
            tmp_path,
            "list",
            *(["-n", flag] if flag else []),
            "--config",
            str(path),
            ARENA_CONFIG=str(settings),
        )
        assert done.returncode == 0, done.stderr
        assert asked(server) == {expected}


def test_the_file_in_the_home_is_read_where_none_is_named(tmp_path: Path) -> None:
    (tmp_path / ".arena").mkdir()
    (tmp_path / ".arena" / "config").write_text("# mine\nnamespace = of-file\n")
    with ScriptedServer(answers()) as server:
        arena(tmp_path, "list", KUBECONFIG=str(config(tmp_path / "kube", server.url, "one")))
        assert asked(server) == {"of-file"}


@pytest.mark.parametrize("value", ["$(touch x)", "Team_A", "a" * 64])
def test_a_namespace_that_can_be_none_is_refused_wherever_it_stands(
    value: str, tmp_path: Path
) -> None:
    (tmp_path / "arena.config").write_text(f"namespace={value}\n")
    with ScriptedServer(answers()) as server:
        path = str(config(tmp_path / "kube", server.url, "one"))
        for words, env in (
            (["-n", value], {}),
            ([], {"ARENA_CONFIG": str(tmp_path / "arena.config")}),
        ):
            done = arena(tmp_path, "list", *words, "--config", path, **env)
            assert (done.returncode, done.stdout) == (1, "") and (
                f"invalid namespace `{value}`"
            ) in done.stderr
        assert server.seen == [] and not (tmp_path / "x").exists()


def test_a_context_of_either_file(tmp_path: Path) -> None:
    with ScriptedServer(answers()) as first, ScriptedServer(answers()) as second:
        both = (
            f"{config(tmp_path / 'a', first.url, 'one')}:"
            f"{config(tmp_path / 'b', second.url, 'two', namespace='of-context')}"
        )
        assert arena(tmp_path, "list", KUBECONFIG=both).returncode == 0
        assert (asked(first), asked(second)) == ({"default"}, set())
        assert arena(tmp_path, "list", "--context", "two", KUBECONFIG=both).returncode == 0
        assert asked(second) == {"of-context"}
        absent = arena(tmp_path, "list", "--context", "three", KUBECONFIG=both)
        assert absent.returncode == 1 and "context `three` is not in kubeconfig" in absent.stderr
