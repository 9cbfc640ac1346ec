"""The commands about users, groups and credentials, over the simulated API server: what they write,
print and refuse. No controller runs; the tests write the statuses that it would write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from msgspec import structs
from tests.cli.people.people_cluster import GROUPS, MERGE, USERS, Cluster, running_cluster
from tests.contracts.simulated import simulated_server
from tests.sim.objects import StillClock

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.object_writer import ObjectWriter
from fairlead.edge.people.people_query import CHANGE_TRIES, PeopleQuery
from fairlead.errors import OutsideError
from fairlead.model.actions import Outcome, PatchObject


def with_team(cluster: Cluster) -> Cluster:
    """Group teamA on root.a.1, Bob in it, and Ann, an administrator."""
    cluster.done("group", "create", "teamA", "--leaf", "root.a.1")
    cluster.set_status(f"{GROUPS}/teama", leaf="root.a.1", namespaces=["namespace1"])
    cluster.done("user", "create", "Bob", "--group", "teamA")
    cluster.done("user", "create", "Ann", "--role", "admin")
    cluster.make_bound("bob", "namespace1")
    cluster.make_bound("ann")
    return cluster


@pytest.fixture
def team(cluster: Cluster) -> Cluster:
    return with_team(cluster)


@pytest.fixture(scope="module")
def unchanged_team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """For tests that check that nothing changed: they share one."""
    with running_cluster(tmp_path_factory.mktemp("team")) as one:
        yield with_team(one)


def test_a_user_and_a_group_become_objects(cluster: Cluster) -> None:
    assert cluster.done("group", "create", "teamA", "--leaf=root.a.1") == "group teama created\n"
    printed = cluster.done("user", "create", "Bob Smith", "--group=teamA", "--external=oidc:47:11")
    assert printed == "user bob-smith created\n"
    bob = cluster.user("bob-smith")
    assert bob["metadata"]["finalizers"] == ["fairlead.io/user"]
    assert bob["spec"] == {
        "userName": "Bob Smith",
        "userId": "bob-smith",
        "apiRoles": ["researcher"],
        "groups": ["teama"],
        "externalUser": {"authType": "oidc", "uid": "47:11", "name": ""},
        "deletable": True,
        "disabled": False,
    }
    group = cluster.api.ask("GET", f"{GROUPS}/teama").body
    assert group["spec"] == {"groupName": "teamA", "quotaNames": ["root.a.1"]}


def test_lists(team: Cluster) -> None:
    assert team.done("user", "list").splitlines() == [
        "ID   NAME  ROLES       GROUPS  NAMESPACES  STATE",
        "ann  Ann   admin                           Bound",
        "bob  Bob   researcher  teama   namespace1  Bound",
    ]
    assert team.done("group", "list").splitlines() == [
        "NAME   GROUP  LEAF      NAMESPACES  USERS  STATE",
        "teama  teamA  root.a.1  namespace1  bob    Pending",
    ]
    listed = json.loads(team.done("user", "list", "-o", "json"))
    assert [each["metadata"]["name"] for each in listed] == ["ann", "bob"]
    shown = yaml.safe_load(team.done("user", "show", "bob", "-o", "yaml"))
    assert shown["status"]["namespaces"] == ["namespace1"]
    assert "Namespaces:      namespace1" in team.done("user", "show", "bob")
    assert json.loads(team.done("group", "list", "-o", "json"))[0]["spec"]["groupName"] == "teamA"


def test_wide_tables_and_documents(team: Cluster) -> None:
    wide = team.done("user", "list", "-o", "wide").splitlines()
    assert wide[0].split()[-3:] == ["EXTERNAL", "DELETABLE", "MESSAGE"]
    assert wide[2].split() == ["bob", "Bob", "researcher", "teama", "namespace1", "Bound", "yes"]
    assert team.done("group", "list", "-o", "wide").split("\n")[0].endswith("ROLES  MESSAGE")
    made = json.loads(team.done("user", "create", "Eve", "--group=teamA", "-o", "json"))
    assert (made["kind"], made["spec"]["userId"]) == ("User", "eve")
    changed = yaml.safe_load(team.done("user", "update", "eve", "--disable", "-o", "yaml"))
    assert changed["spec"]["disabled"] is True
    group = yaml.safe_load(team.done("group", "create", "teamB", "--leaf=root.b.1", "-o", "yaml"))
    assert group["spec"]["quotaNames"] == ["root.b.1"]
    config = json.loads(team.done("kubeconfig", "create", "bob", "-o", "json"))
    assert config["kind"] == "Config"
    for words in ("user list", "group show teamA", "user create X", "kubeconfig list"):
        assert "only support:[wide|json|yaml]" in team.refused(*words.split(), "-o", "xml")


def test_a_group_is_shown_and_changed(team: Cluster) -> None:
    team.done("user", "create", "Eve", "--role", "admin")
    flags = ("--name=Team-1", "--add-user=eve", "--add-role=view", "--add-cluster-role=nodes")
    caps = ("--cap=bob:nvidia.com/gpu=4,cpu=8", "--cap=eve:cpu=1")
    assert team.done("group", "update", "teamA", *flags, *caps) == "group teama changed\n"
    assert team.user("eve")["spec"]["groups"] == ["teama"]
    assert team.group("teama")["spec"] == {
        "groupName": "Team-1",
        "quotaNames": ["root.a.1"],
        "defaultRoles": ["view"],
        "defaultClusterRoles": ["nodes"],
        "userCaps": {"bob": {"nvidia.com/gpu": "4", "cpu": "8"}, "eve": {"cpu": "1"}},
    }
    assert team.done("group", "show", "Team-1").splitlines() == [
        "Group:          teama",
        "Name:           Team-1",
        "Leaf:           root.a.1",
        "Namespaces:     namespace1",
        "Users:          bob, eve",
        "Roles:          view",
        "Cluster roles:  nodes",
        "Cap:            bob: nvidia.com/gpu 4, cpu 8",
        "Cap:            eve: cpu 1",
        "State:          Pending",
    ]
    gone = ("--remove-role=view", "--remove-cluster-role=nodes", "--remove-cap=eve")
    team.done("group", "update", "teama", *gone, "--cap=bob:cpu=2", "--remove-user=eve")
    assert team.group("teama")["spec"] == {
        "groupName": "Team-1",
        "quotaNames": ["root.a.1"],
        "userCaps": {"bob": {"cpu": "2"}},
    }
    assert team.user("eve")["spec"]["groups"] == []
    assert team.done("group", "update", "teama") == "group teama is unchanged\n"


def test_a_user_leaves_a_group_that_no_longer_exists(team: Cluster) -> None:
    team.done("group", "create", "teamB", "--leaf=root.b.1")
    team.done("user", "update", "bob", "--add-group", "teamB")
    team.api.ask("DELETE", f"{GROUPS}/teama")
    team.done("user", "update", "bob", "--remove-group", "teama")
    assert team.user("bob")["spec"]["groups"] == ["teamb"]


def test_a_credential_is_shown_without_its_token(team: Cluster) -> None:
    config = team.done("kubeconfig", "create", "bob", "--note", "ci")
    listed = json.loads(team.done("kubeconfig", "list", "-o", "json"))
    shown = team.done("kubeconfig", "show", listed[0]["name"])
    assert "User:" in shown and "Note:" in shown
    assert "State:       expired" in shown, "the simulated clock stands still in the past"
    assert yaml.safe_load(config)["users"][0]["user"]["token"] not in shown
    assert json.loads(team.done("kubeconfig", "show", listed[0]["name"], "-o", "json")) == listed[0]
    assert listed[0]["renewed"] is False


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("group show none", "there is no group `none`"),
        ("group update none --name x", "there is no group `none`"),
        ("group update teamA --name team_a", "the group name `team_a`"),
        ("group update teamA --add-user none", "there is no user `none`"),
        ("group update teamA --add-user Bob", "there is no user `Bob`"),
        ("group update teamA --remove-user bob", "the researcher bob needs a group"),
        ("group update teamA --add-user bob --remove-user bob", "in both --add-user and"),
        ("group update teamA --name x --remove-user bob", "the researcher bob needs a group"),
        ("group update teamA --remove-role view", "does not have the role `view`"),
        ("group update teamA --cap bob", "is not ID:RESOURCE=AMOUNT"),
        ("group update teamA --cap bob:cpu=many", "`many` is not an amount of cpu"),
        ("group update teamA --cap bob:cpu=-1", "`-1` is not an amount of cpu"),
        ("group update teamA --cap none:cpu=1", "there is no user `none`"),
        ("kubeconfig list none", "there is no user `none`"),
        ("kubeconfig show none", "there is no credential `none`"),
        ("user create BOB --group teamA", "makes the id `bob`, which another user has"),
        ("user create Eve", "the researcher eve needs a group"),
        ("user create Eve --group none", "there is no group `none`"),
        ("user create Eve --group teamA --external x", "is not TYPE:UID"),
        ("group create teamB --leaf root.a.1", "belongs to the group teama"),
        ("group create teamB --leaf root.a", "has children"),
        ("group create teamB --leaf root.zzz", "no node root.zzz"),
        ("group create team_b --leaf root.a.2", "the group name `team_b`"),
        ("group create TEAMA --leaf root.a.2", "which another group has"),
        ("group delete teamA", "these users list the group teama: bob"),
        ("group delete none", "there is no group `none`"),
        ("user delete ann", "the last administrator"),
        ("user update ann --disable", "the last administrator"),
        ("user update ann --role researcher", "needs a group"),
        ("user update ann --role researcher --add-group teamA", "the last administrator"),
        ("user update bob --remove-group teamA", "needs a group"),
        ("user update bob --enable --disable", "exclude each other"),
        ("user show eve", "there is no user `eve`"),
        ("kubeconfig create eve", "there is no user `eve`"),
        ("kubeconfig create bob --lifetime 9m", "less than 10m"),
        ("kubeconfig create bob --lifetime soon", "`soon` is not a length of time"),
        ("kubeconfig create bob --exec a --lifetime 8d", "is more than 7d"),
        ("kubeconfig create bob --exec /", "it is a directory"),
        ("kubeconfig create bob --exec-path a", "--exec-path without --exec"),
        ("kubeconfig create bob -n namespace2", "no rights in namespace `namespace2`"),
        ("kubeconfig delete none", "there is no credential `none`"),
    ],
)
def test_what_is_refused_changes_nothing(unchanged_team: Cluster, words: str, why: str) -> None:
    team = unchanged_team
    before = [team.api.ask("GET", path).body["items"] for path in (USERS, GROUPS)]
    assert why in team.refused(*words.split())
    assert [team.api.ask("GET", path).body["items"] for path in (USERS, GROUPS)] == before


def test_groups_and_rights_of_a_user_change(team: Cluster) -> None:
    team.done("group", "create", "teamB", "--leaf=root.b.1")
    team.done("user", "update", "bob", "--add-group", "teamB", "--remove-group", "teamA")
    assert team.user("bob")["spec"]["groups"] == ["teamb"]
    team.done("user", "update", "bob", "--disable")
    assert team.user("bob")["spec"]["disabled"] is True
    assert "bob has no ServiceAccount" not in team.done("user", "list")
    assert "is disabled, so no token" in team.refused("kubeconfig", "create", "bob")
    team.done("user", "update", "bob", "--enable", "--role", "admin")
    spec = team.user("bob")["spec"]
    assert (spec["disabled"], spec["apiRoles"]) == (False, ["admin"])
    assert team.done("user", "update", "bob", "--enable") == "user bob is unchanged\n"
    assert team.user("bob")["metadata"]["finalizers"] == ["fairlead.io/user"]


def test_a_user_with_unfinished_work_stays_in_the_group_and_in_the_cluster(team: Cluster) -> None:
    team.done("group", "create", "teamB", "--leaf=root.b.1")
    team.make_pod("bob", "namespace1")
    left = ("user", "update", "bob", "--add-group=teamB", "--remove-group=teamA")
    assert "bob has 1 unfinished pod in namespace1" in team.refused(*left)
    assert "bob has 1 unfinished pod in namespace1" in team.refused("user", "delete", "bob")
    assert team.done("user", "delete", "bob", "--force") == "user bob deleted\n"
    meta = team.user("bob")["metadata"]
    assert meta["annotations"]["fairlead.io/force-delete"] == "true"
    assert "deletionTimestamp" in meta, "the controller's finalizer holds it"
    assert "bob is being deleted" in team.refused("kubeconfig", "create", "bob")


def test_names_reach_no_terminal_unescaped(team: Cluster) -> None:
    team.done("user", "create", "E\x1b[31mve\nx", "--group=teamA")
    team.make_bound("e--31mve-x", "namespace1")
    note = "--note=a\x1b]0;b"
    team.done("kubeconfig", "create", "e--31mve-x", note)
    printed = [
        team.done("user", "list"),
        team.done("user", "show", "e--31mve-x"),
        team.done("group", "list"),
        team.done("kubeconfig", "list"),
        team.done("kubeconfig", "show", team.done("kubeconfig", "list").split("\n")[1].split()[0]),
        team.done("group", "show", "teamA"),
        team.done("user", "list", "-o", "wide"),
        team.refused("user", "show", "\x1b[31m"),
    ]
    assert all("\x1b" not in each for each in printed), printed
    assert "E^[[31mve..." in printed[0]


def test_several_deletions_go_on_after_a_refused_one(team: Cluster) -> None:
    ended = team.run("user", "delete", "none", "bob")
    assert (ended.returncode, ended.stdout) == (1, "user bob deleted\n")
    assert "there is no user `none`" in ended.stderr


def test_a_kubeconfig_works_until_it_is_revoked(team: Cluster) -> None:
    ended = team.run("kubeconfig", "create", "bob", "--note=laptop", "--server=https://api.example")
    assert ended.returncode == 0, ended.stderr
    config = yaml.safe_load(ended.stdout)
    assert config["clusters"][0]["name"] == "kubernetes"
    assert config["clusters"][0]["cluster"]["server"] == "https://api.example"
    assert config["clusters"][0]["cluster"]["certificate-authority-data"]
    assert config["current-context"] == config["contexts"][0]["name"] == "bob"
    assert config["contexts"][0]["context"] == {
        "cluster": "kubernetes",
        "user": "bob",
        "namespace": "namespace1",
    }
    token = config["users"][0]["user"]["token"]
    assert token not in ended.stderr
    bob = team.api.as_stranger(token)
    assert bob.ask("GET", "/api/v1/namespaces/namespace1/pods").status == 403
    listed = json.loads(team.done("kubeconfig", "list", "bob", "-o", "json"))
    assert [(each["user"], each["note"]) for each in listed] == [("bob", "laptop")]
    secret = team.api.ask("GET", f"/api/v1/namespaces/kube-ai/secrets/{listed[0]['name']}").body
    assert "data" not in secret and token not in json.dumps(secret)
    printed = team.done("kubeconfig", "delete", listed[0]["name"])
    assert printed == f"credential {listed[0]['name']} of bob revoked\n"
    assert bob.ask("GET", "/api/v1/namespaces/namespace1/pods").status == 401
    assert json.loads(team.done("kubeconfig", "list", "-o", "json")) == []


def test_all_tokens_of_a_user_are_revoked_and_of_no_other(team: Cluster) -> None:
    tokens = {
        name: yaml.safe_load(team.done("kubeconfig", "create", name))["users"][0]["user"]["token"]
        for name in ("bob", "ann")
    }
    bare = team.api.ask(
        "POST", "/api/v1/namespaces/kube-ai/serviceaccounts/bob/token", {"spec": {}}
    ).body["status"]["token"]
    printed = team.done("kubeconfig", "delete", "bob", "--all")
    assert printed == "every token of bob revoked, 1 recorded\n"

    def status(token: str) -> int:
        return team.api.as_stranger(token).ask("GET", "/api/v1/namespaces").status

    assert (status(tokens["bob"]), status(bare), status(tokens["ann"])) == (401, 401, 403)


def test_a_token_that_is_refused_leaves_no_credential(team: Cluster) -> None:
    team.api.ask("DELETE", "/api/v1/namespaces/kube-ai/serviceaccounts/bob")
    ended = team.run("kubeconfig", "create", "bob")
    assert ended.returncode == 2 and ended.stdout == ""
    assert json.loads(team.done("kubeconfig", "list", "-o", "json")) == []


def test_no_renewed_credential_is_issued_where_no_policy_limits_it(
    team: Cluster, tmp_path: Path
) -> None:
    """The simulated API server evaluates no admission policies."""
    file = tmp_path / "token.json"
    printed = team.refused("kubeconfig", "create", "bob", "--exec", str(file))
    assert "the cluster does not have the policy fairlead-renewal" in printed
    assert not file.exists()
    assert json.loads(team.done("kubeconfig", "list", "-o", "json")) == []


def test_a_user_that_was_changed_meanwhile_is_not_overwritten(team: Cluster) -> None:
    connection = find_connection(str(team.api.kubeconfig), env={})
    assert connection is not None
    query = PeopleQuery(KubeBlocking(connection), lambda: 0.0)
    before = query.read().users["bob"]
    team.done("user", "update", "bob", "--role", "admin")
    with pytest.raises(OutsideError, match="modified"):
        query.change_user(before, structs.replace(before, is_disabled=True))
    assert team.user("bob")["spec"]["disabled"] is False


@pytest.mark.parametrize("times", [1, CHANGE_TRIES - 1])
def test_a_status_that_was_written_meanwhile_is_no_conflict(
    team: Cluster, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The controller writes it at any time; `times`: between each read and its write."""
    connection = find_connection(str(team.api.kubeconfig), env={})
    assert connection is not None
    query = PeopleQuery(KubeBlocking(connection), lambda: 0.0)
    record = query.read()
    user, group = record.users["bob"], record.groups["teama"]
    apply, left = ObjectWriter.apply, [times, times]

    def late(writer: ObjectWriter, action: PatchObject) -> Outcome:
        is_group = action.target.kind == "UserGroup"
        if left[is_group]:
            left[is_group] -= 1
            path = f"{GROUPS}/teama" if is_group else f"{USERS}/bob"
            team.set_status(path, observedGeneration=100 + left[is_group])
        return apply(writer, action)

    monkeypatch.setattr(ObjectWriter, "apply", late)
    query.change_user(user, structs.replace(user, user_name="Bobby"))
    query.change_group(group, structs.replace(group, group_name="other"))
    assert left == [0, 0]
    assert team.user("bob")["spec"]["userName"] == "Bobby"
    assert team.group("teama")["spec"]["groupName"] == "other"


def test_a_group_whose_leaf_was_renamed_meanwhile_is_not_overwritten(team: Cluster) -> None:
    connection = find_connection(str(team.api.kubeconfig), env={})
    assert connection is not None
    query = PeopleQuery(KubeBlocking(connection), lambda: 0.0)
    before = query.read().groups["teama"]
    team.set_status(f"{GROUPS}/teama", renamedTo="root.new")
    moved = {"spec": {"quotaNames": ["root.new"]}}
    assert team.api.ask("PATCH", f"{GROUPS}/teama", moved, headers=MERGE).status == 200
    with pytest.raises(OutsideError, match="modified"):
        query.change_group(before, structs.replace(before, group_name="other"))
    assert team.group("teama")["spec"]["quotaNames"] == ["root.new"]
    assert team.done("group", "update", "teamA", "--name", "other") == "group teama changed\n"


def test_no_token_is_issued_before_the_user_has_a_service_account(cluster: Cluster) -> None:
    cluster.done("user", "create", "Ann", "--role", "admin")
    assert "no ServiceAccount" in cluster.refused("kubeconfig", "create", "ann")


def test_a_cluster_without_users_is_one_sentence(tmp_path: Path) -> None:
    with simulated_server(tmp_path, StillClock()) as server:
        assert "the cluster has no users and groups" in Cluster(server, tmp_path).refused(
            "user", "list"
        )
