"""`fairlead login`: what kubectl reads from it, when it renews a token, and what it refuses.

The renewal itself is tried with the real kubectl and API server (tests/kube/test_people.py).
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.arena import environment, run_main

Object = dict[str, Any]
ABSENT = {"server": "http://127.0.0.1:9"}
"""No server listens there."""


def token_file(home: Path, left: float, **fields: Any) -> Path:
    """A file of `kubeconfig create --exec` with a token of an hour, of which `left` seconds are
    left.
    """
    credential = {
        "user": "bob",
        "secret": "bob-1",
        "secretUid": "u",
        "seconds": 3600,
        "token": "secret-token",
        "expiresAt": time.time() + left,
    }
    path = home / "token.json"
    kept = {"kind": "FairleadCredential", "credential": {**credential, **fields}}
    path.write_text(json.dumps(kept), encoding="utf-8")
    path.chmod(0o600)
    return path


def login(home: Path, cluster: Object | None, *words: str) -> subprocess.CompletedProcess[str]:
    """As kubectl runs it; `cluster`: what kubectl names, None = by hand."""
    env = environment(home)
    if cluster is not None:
        spec = {"cluster": cluster, "interactive": False}
        env["KUBERNETES_EXEC_INFO"] = json.dumps({"kind": "ExecCredential", "spec": spec})
    return run_main("fairlead", ("login", *words), env)


def test_a_token_with_half_its_lifetime_is_printed_as_it_is(tmp_path: Path) -> None:
    path = token_file(tmp_path, 1900)
    before = path.read_bytes()
    ended = login(tmp_path, None, str(path))
    assert (ended.returncode, ended.stderr) == (0, "")
    printed = json.loads(ended.stdout)
    ends = json.loads(before)["credential"]["expiresAt"]
    utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends))
    assert printed == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "secret-token", "expirationTimestamp": utc},
    }
    assert path.read_bytes() == before


def test_a_token_that_is_not_renewed_works_until_it_ends(tmp_path: Path) -> None:
    path = token_file(tmp_path, 1700)
    ended = login(tmp_path, ABSENT, str(path))
    assert json.loads(ended.stdout)["status"]["token"] == "secret-token"
    assert "is not renewed" in ended.stderr
    over = login(tmp_path, ABSENT, str(token_file(tmp_path, -1)))
    assert (over.returncode, over.stdout) == (1, "")
    assert "has expired and is not renewed" in over.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a file of `fairlead kubeconfig create --exec`"),
        ('{"kind": "Config", "password": "hidden"}', "is not a file of"),
        ('{"kind": "FairleadCredential", "credential": {"token": "hidden"}}', "is not a file of"),
        ("-----BEGIN PRIVATE KEY-----\nhidden", "is not a file of"),
    ],
    ids=["empty", "another-kind", "fields-missing", "no-json"],
)
def test_another_file_is_refused_without_a_word_of_it(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "other"
    path.write_text(text, encoding="utf-8")
    ended = login(tmp_path, ABSENT, str(path))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert why in ended.stderr
    assert "hidden" not in ended.stderr
    assert path.read_text(encoding="utf-8") == text


def test_an_absent_file_is_one_sentence(tmp_path: Path) -> None:
    ended = login(tmp_path, ABSENT, str(tmp_path / "none.json"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "none.json` cannot be read: no such file or directory" in ended.stderr


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (None, "the variable KUBERNETES_EXEC_INFO is not set"),
        ({}, "has no usable host and port"),
        ({"server": 7}, "the cluster in KUBERNETES_EXEC_INFO is malformed"),
        ({"server": "ftp://x"}, "`ftp://x` is neither http nor https"),
    ],
)
def test_a_renewal_needs_the_cluster_that_kubectl_names(
    tmp_path: Path, cluster: Object | None, why: str
) -> None:
    ended = login(tmp_path, cluster, str(token_file(tmp_path, 60)))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "secret-token" not in ended.stderr
    assert why in ended.stderr
