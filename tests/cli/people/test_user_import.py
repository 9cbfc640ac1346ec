"""`fairlead user import`: objects of files and of ACK's console, twice, without their passwords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.people.people_cluster import GROUPS, USERS, Cluster

Object = dict[str, Any]
API = "data.kubeai.alibabacloud.com/v1"
BOB: Object = {
    "apiVersion": API,
    "kind": "User",
    "metadata": {"name": "bob", "namespace": "kube-ai", "uid": "old", "resourceVersion": "7"},
    "spec": {
        "userName": "Bob",
        "userId": "bob",
        "aliuid": "1234",
        "password": "s3cret!",
        "apiRoles": ["researcher"],
        "groups": ["team-a"],
        "externalUsers": [{"authType": "ram", "uid": "42", "name": "bob@corp"}, {"uid": "43"}],
        "k8sServiceAccount": {"name": "bob", "roleBindings": [{"name": "x"}]},
        "deletable": False,
    },
}
TEAM: Object = {
    "apiVersion": API,
    "kind": "UserGroup",
    "metadata": {"name": "team-a", "namespace": "kube-ai"},
    "spec": {"groupName": "teamA", "quotaNames": ["root.a.1"], "defaultRoles": ["researcher"]},
}


def file_of(folder: Path, *objects: Object) -> str:
    path = folder / "people.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return str(path)


def test_users_of_acks_console_are_imported_twice(cluster: Cluster, tmp_path: Path) -> None:
    file = file_of(tmp_path, BOB, TEAM, {"kind": "ConfigMap"})
    first = cluster.run("user", "import", file)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "UserGroup team-a created\nUser bob created\n"
    for each in (
        "its password is dropped",
        "its stored bindings are ignored",
        "of 2 external users the first is kept",
        "defaultRoles researcher are left out",
    ):
        assert each in first.stderr
    assert "s3cret" not in first.stdout + first.stderr
    spec = cluster.user("bob")["spec"]
    assert spec == {
        "userName": "Bob",
        "userId": "bob",
        "aliuid": "1234",
        "apiRoles": ["researcher"],
        "groups": ["team-a"],
        "externalUser": {"authType": "ram", "uid": "42", "name": "bob@corp"},
        "deletable": False,
        "disabled": False,
    }
    before = [cluster.api.ask("GET", path).body["items"] for path in (USERS, GROUPS)]
    again = cluster.run("user", "import", file)
    assert again.stdout == "UserGroup team-a unchanged\nUser bob unchanged\n"
    assert [cluster.api.ask("GET", path).body["items"] for path in (USERS, GROUPS)] == before


def test_differences_are_printed_and_nothing_is_overwritten(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.done("user", "import", file_of(tmp_path, BOB, TEAM))
    other = {**BOB, "spec": {**BOB["spec"], "userName": "Robert", "apiRoles": ["admin"]}}
    printed = cluster.done("user", "import", file_of(tmp_path, other))
    assert printed == "User bob differs and is kept as it is: user_name, roles\n"
    assert cluster.user("bob")["spec"]["userName"] == "Bob"


def test_a_dry_run_writes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    file = file_of(tmp_path, BOB)
    assert cluster.done("user", "import", "--dry-run", file) == "User bob created (dry run)\n"
    assert cluster.user("bob")["code"] == 404


def test_what_fairlead_prints_can_be_imported(cluster: Cluster, tmp_path: Path) -> None:
    cluster.done("user", "import", file_of(tmp_path, BOB, TEAM))
    listed = tmp_path / "listed.yaml"
    shown = yaml.safe_load(cluster.done("user", "show", "bob", "-o", "yaml"))
    listed.write_text(yaml.safe_dump({"kind": "List", "items": [shown]}), encoding="utf-8")
    assert cluster.done("user", "import", str(listed)) == "User bob unchanged\n"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"userId": "other"}, "userId is `other` and the object's name is `bob`"),
        ({"apiRoles": ["root"]}, "apiRoles has `root`"),
        ({"groups": "team"}, "groups is `team`"),
    ],
)
def test_a_malformed_user_is_left_out_and_the_others_are_imported(
    cluster: Cluster, tmp_path: Path, change: Object, why: str
) -> None:
    ended = cluster.run(
        "user", "import", file_of(tmp_path, {**BOB, "spec": {**BOB["spec"], **change}}, TEAM)
    )
    assert ended.returncode == 1
    assert ended.stdout == "UserGroup team-a created\n"
    assert f"User bob is not imported: {why}" in ended.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "is not YAML"), ("a: 1", "no User and no UserGroup"), ("", "no User and no UserGroup")],
)
def test_a_file_without_users_is_one_sentence(
    cluster: Cluster, tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    assert why in cluster.refused("user", "import", str(path))
    assert "nothing to import" in cluster.refused("user", "import")


def test_a_file_that_is_absent_is_one_sentence(cluster: Cluster, tmp_path: Path) -> None:
    absent = tmp_path / "absent.yaml"
    refusal = cluster.refused("user", "import", str(absent))
    assert f"file `{absent}` cannot be read: No such file or directory" in refusal


def test_users_are_read_from_the_cluster_and_keep_their_service_accounts(cluster: Cluster) -> None:
    assert "the cluster serves no users of" in cluster.refused("user", "import", "--from-cluster")
    for plural, kind in (("users", "User"), ("usergroups", "UserGroup")):
        definition = vendor_definition(plural, kind)
        cluster.do(lambda stored, made=definition: stored.create(made))
    cluster.do(lambda stored: [stored.create(each) for each in (bare(BOB), bare(TEAM))])
    account = {"metadata": {"name": "bob"}}
    cluster.api.ask("POST", "/api/v1/namespaces/kube-ai/serviceaccounts", account)
    printed = cluster.done("user", "import", "--from-cluster", "--adopt")
    assert printed == "UserGroup team-a created\nUser bob created\n"
    adopted = cluster.api.ask("GET", "/api/v1/namespaces/kube-ai/serviceaccounts/bob").body
    assert adopted["metadata"]["labels"] == {"fairlead.io/user": "bob"}


def bare(obj: Object) -> Object:
    meta = {key: obj["metadata"][key] for key in ("name", "namespace")}
    return {**obj, "metadata": meta}


def vendor_definition(plural: str, kind: str) -> Object:
    group = API.partition("/")[0]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    names = {
        "plural": plural,
        "singular": kind.lower(),
        "kind": kind,
        "listKind": f"{kind}List",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
