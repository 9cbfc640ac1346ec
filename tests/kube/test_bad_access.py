"""Error messages for a kubeconfig that does not open the real cluster: what failed, the actual
value, a hint; never a traceback.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.kube.addresses import free_port
from tests.kube.certificates import Authority
from tests.kube.control_plane import ControlPlane
from tests.kube.kubeconfigs import certificate_user, token_user, write_kubeconfig
from tests.kube.servers import FAIRLEAD, environment, fairlead_answer
from tests.waiting import HANG_SECONDS

READ = ["get", "list", "watch"]


def run(*arguments: str, kubeconfig: Path) -> tuple[int, str]:
    """Exit status and standard error of `fairlead …`; standard output must stay empty."""
    answer = fairlead_answer(kubeconfig, *arguments)
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    return answer.returncode, answer.stderr


def test_forbidden_names_the_verb_and_the_resource(control_plane: ControlPlane) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": READ}]
    status, printed = run(
        "top", "node", kubeconfig=control_plane.write_service_account_kubeconfig("no-pods", rules)
    )
    assert status == 2
    assert "list" in printed
    assert "pods" in printed
    assert "system:serviceaccount:default:no-pods" in printed
    assert "hint:" in printed


def test_a_snapshot_of_which_nothing_may_be_read_is_not_saved_and_what_is_missing_is_named(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": READ}]
    kubeconfig = control_plane.write_service_account_kubeconfig("only-nodes", rules)
    status, printed = run("snapshot", "save", str(tmp_path / "s"), kubeconfig=kubeconfig)
    assert status == 2
    assert not (tmp_path / "s").exists()
    (error,) = (line for line in printed.splitlines() if line.startswith("error: "))
    assert (
        " events, " in error
        and " pods, " in error
        and " deployments.apps, " in error
        and " nodes" not in error
    )
    assert (
        "warning: pods cannot be read: pods is forbidden: User "
        '"system:serviceaccount:default:only-nodes" cannot list'
    ) in printed


def test_an_invalid_token_gets_a_refusal(control_plane: ControlPlane, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(
        tmp_path / "config",
        control_plane.server,
        control_plane.authority,
        token_user("not-a-token"),
    )
    status, printed = run("top", "node", kubeconfig=kubeconfig)
    assert status == 2
    assert control_plane.server.removeprefix("https://") in printed
    assert "401" in printed or "unauthorized" in printed.lower() or "credential" in printed.lower()
    assert "not-a-token" not in printed
    assert "hint:" in printed


def test_another_authority_is_distinguished_from_an_unreachable_server(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger")
    user = certificate_user(control_plane.admin_pair)
    kubeconfig = write_kubeconfig(
        tmp_path / "config", control_plane.server, stranger.certificate, user
    )
    status, printed = run("top", "node", kubeconfig=kubeconfig)
    assert status == 2
    assert "certificate" in printed.lower()
    assert control_plane.server.removeprefix("https://") in printed
    assert "hint:" in printed


def test_no_listener(control_plane: ControlPlane, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    user = certificate_user(control_plane.admin_pair)
    kubeconfig = write_kubeconfig(
        tmp_path / "config", f"https://{address}", control_plane.authority, user
    )
    status, printed = run("top", "node", kubeconfig=kubeconfig)
    assert status == 2
    assert address in printed
    assert "refused" in printed
    assert "hint:" in printed


def test_a_context_that_does_not_exist(control_plane: ControlPlane) -> None:
    status, printed = run("top", "node", "--context=tset", kubeconfig=control_plane.kubeconfig)
    assert status == 1
    assert "tset" in printed
    assert "hint:" in printed


def test_no_kubeconfig_there(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere"
    status, printed = run("top", "node", kubeconfig=missing)
    assert status == 1
    assert str(missing) in printed


def test_an_impersonated_user_has_that_users_rights(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    document = yaml.safe_load(control_plane.kubeconfig.read_text(encoding="utf-8"))
    document["users"][0]["user"]["as"] = "somebody"
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(yaml.safe_dump(document), encoding="utf-8")
    status, printed = run("top", "node", kubeconfig=kubeconfig)
    assert status == 2
    assert "somebody" in printed


@pytest.mark.parametrize("verb", ["cluster-exporter", "console"])
def test_a_server_of_fairlead_names_what_it_may_not_read(
    control_plane: ControlPlane, verb: str, tmp_path: Path
) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes", "events"], "verbs": READ}]
    kubeconfig = control_plane.write_service_account_kubeconfig(f"{verb}-no-pods", rules)
    log = tmp_path / "log"
    with log.open("wb") as output:
        argv = [
            *FAIRLEAD,
            verb,
            f"--listen=127.0.0.1:{free_port()}",
            "--kubeconfig",
            str(kubeconfig),
        ]
        process = subprocess.Popen(
            argv,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=6)  # it continues: rights may be granted while it runs
    finally:
        process.terminate()
        assert process.wait(timeout=HANG_SECONDS) == 0
    printed = log.read_text(encoding="utf-8")
    assert "pods" in printed
    assert "Traceback" not in printed
    assert sys.executable not in printed
