"""A team is let in, on a real control plane: from a group to a job that runs, and what the console
writes and reads as its users.

Oracles are kubectl, the API server's own audit, and `quota_truth`.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any

import pytest
from tests.kube.quota_line import TREES, deployment, settled
from tests.kube.quota_truth import QuotaTruth, is_admitted
from tests.kube.servers import run_arena
from tests.kube.team_line import (
    NODE,
    Object,
    Team,
    Visitor,
    account_of,
    group,
    orders,
    running_team,
    user,
)
from tests.kube.team_walk import ROOT, bound, changed, evicted, put_tree, submit, walk
from tests.waiting import HANG_SECONDS, wait_until

pytestmark = pytest.mark.turns(2, 1)

EVES = account_of("eve")


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    made = (user("ruth", role="admin"), group("team-b", "root.a.2"), user("eve", "team-b"))
    with running_team(ROOT, *made) as running:
        wait_until("users have rights", lambda: bound(running, "ruth") and bound(running, "eve"))
        yield running


@pytest.fixture(scope="module")
def ruth(team: Team) -> Visitor:
    return team.visitor("ruth")


@pytest.fixture(scope="module")
def eve(team: Team) -> Visitor:
    made = team.visitor("eve")
    wait_until("eve has the namespace", lambda: made.ask("/me")[1]["user"]["namespaces"])
    return made


def test_a_team_is_let_in_works_and_is_let_out(team: Team, ruth: Visitor) -> None:
    """tests/kube/test_team_on_the_laptop.py has the same in the simulated world."""
    walk(team, ruth)


# --- what is read and written for a user is asked as the user -------------------------------------


@pytest.fixture(scope="module")
def job(team: Team, eve: Visitor) -> str:
    """The path of a job of eve's that runs: a launcher and a worker."""
    submit(team, team.cluster.kubeconfig, "bert", "team-two", "1")
    path = "/jobs/team-two/mpijob/bert"
    wait_until(
        "the job runs on eve's board",
        lambda: (found := eve.ask(path))[0] == 200 and found[1]["job"]["status"] == "Running",
    )
    return path


def pods_of(who: Visitor, job: str) -> dict[str, str]:
    """The names of the job's pods, by role."""
    return {each["role"]: each["name"] for each in who.ask(f"{job}/instances")[1]["items"]}


def test_what_is_read_for_a_user_is_asked_as_the_user(team: Team, eve: Visitor, job: str) -> None:
    """Logs of launcher and worker, of a run before, the manifest, and Events."""
    for pod in pods_of(eve, job).values():
        assert eve.ask(f"{job}/logs?pod={pod}") == (200, "now\n")
        assert eve.ask(f"{job}/logs?pod={pod}&previous=true") == (200, "before\n")
    assert eve.ask(f"{job}/manifest")[0] == 200
    status, found = eve.ask(f"{job}/events")
    assert status == 200 and found["items"] != []
    assert "events" not in {each["source"] for each in found["warnings"]}

    def noted() -> bool:
        return len(team.asked("pods", "log")) == 4

    wait_until("the API server has noted the requests", noted)
    assert set(team.asked("pods", "log")) == {EVES}
    assert EVES in team.asked("events", namespace="team-two")
    assert team.asked("mpijobs", namespace="team-two") == [EVES]


@contextmanager
def nothing_makes_rights(team: Team) -> Iterator[None]:
    """The people controller does not run, so that what it would make again stays away."""
    team.people.stop()
    try:
        yield
    finally:
        team.start(team.people)


def test_a_right_that_the_api_server_withdrew_counts_within_a_second(
    team: Team, ruth: Visitor, eve: Visitor, job: str
) -> None:
    """The snapshot, the group and the user's status still name the namespace."""
    admin = team.cluster.admin
    pod = pods_of(eve, job)["worker"]
    with nothing_makes_rights(team):
        stream = eve.open(f"{job}/logs?pod={pod}&follow=true")
        assert stream.read(4) == b"now\n"
        binding = "eve:team-two:fairlead-researcher"
        admin.run("delete", "rolebinding", binding, "-n", "team-two")
        began = time.monotonic()
        wait_until("no log", lambda: eve.ask(f"{job}/logs?pod={pod}")[0] == 403, 30, 0.05)
        took = time.monotonic() - began
        print(f"a withdrawn right counted after {took:.2f} s")
        assert took < 5, "1 s on a machine that is not busy"
        status, answer = eve.ask(f"{job}/logs?pod={pod}&previous=true")
        assert (status, answer["code"]) == (403, "forbidden")
        assert f'User "{EVES}" cannot get resource "pods/log"' in answer["error"]
        assert answer["hint"] == (
            f"`{EVES}` needs the right `get` of `pods/log` in namespace `team-two`"
        )
        assert eve.ask(f"{job}/manifest")[0] == 403
        with pytest.raises(HTTPException):  # it is cut: it does not look whole
            stream.read()
        assert eve.ask(job)[0] == 200, "lists come from the snapshot"
        for method, body in (("PATCH", {"suspended": True}), ("DELETE", None)):
            status, answer = eve.ask(job, method, body)
            assert (status, answer["code"]) == (403, "forbidden"), answer
            assert f'User "{EVES}" cannot' in answer["error"]
        assert admin.get("mpijobs", "-n", "team-two")[0]["spec"]["runPolicy"].get("suspend") in (
            None,
            False,
        )
        assert ruth.rows(actor="eve", result="refused")[-2:] == [
            ("refused", "forbidden", "bert"),
            ("refused", "forbidden", "bert"),
        ]
    wait_until("eve may again", lambda: eve.ask(f"{job}/logs?pod={pod}")[0] == 200)


def unschedulable(team: Team) -> bool:
    return bool(team.cluster.admin.get("nodes")[0]["spec"].get("unschedulable"))


def test_a_node_is_cordoned_as_the_administrator(team: Team, ruth: Visitor, eve: Visitor) -> None:
    path = f"/nodes/{NODE}"
    for is_schedulable in (False, True):
        assert ruth.ask(path, "PATCH", {"schedulable": is_schedulable})[0] == 200
        assert unschedulable(team) is not is_schedulable
    assert set(team.asked("nodes")) >= {account_of("ruth")}
    assert eve.ask(path, "PATCH", {"schedulable": False})[0] == 403
    with nothing_makes_rights(team):
        name = "ruth:clusterRole:fairlead-admin"
        team.cluster.admin.run("delete", "clusterrolebinding", name)

        def tried() -> tuple[int, Any]:
            return ruth.ask(path, "PATCH", {"schedulable": False})

        status, answer = tried()
        assert (status, answer["code"]) == (403, "forbidden"), answer
        assert 'cannot patch resource "nodes"' in answer["error"]
        assert unschedulable(team) is False
    wait_until("ruth may again", lambda: bound(team, "ruth"))
    rows = ruth.rows(action="nodes.update")
    assert rows == [
        ("ok", "", NODE),
        ("ok", "", NODE),
        ("refused", "forbidden", NODE),
        ("refused", "forbidden", NODE),
    ]


def test_a_job_is_suspended_resumed_and_deleted_as_its_user(
    team: Team, eve: Visitor, job: str
) -> None:
    def pods() -> int:
        return len(team.cluster.admin.get("pods", "-n", "team-two"))

    assert eve.ask(job, "PATCH", {"suspended": True})[0] == 200
    wait_until("its pods are gone", lambda: pods() == 0)
    assert eve.ask(job, "PATCH", {"suspended": False})[0] == 200
    wait_until("its pods are made again", lambda: pods() == 2)
    submit(team, team.cluster.kubeconfig, "short", "team-two", "1")
    other = "/jobs/team-two/mpijob/short"
    wait_until("it is on the board", lambda: eve.ask(other)[0] == 200)
    assert eve.ask(other, "DELETE")[0] == 200
    left = {
        each["metadata"]["name"] for each in team.cluster.admin.get("mpijobs", "-n", "team-two")
    }
    assert left == {"bert"}
    wait_until("the board has it no more", lambda: eve.ask(other)[0] == 404)
    assert set(team.asked("mpijobs", namespace="team-two")) == {EVES}


# --- submitted from the page ----------------------------------------------------------------------


def new_job(name: str, place: str = "team-two", **flags: Any) -> Object:
    """The body of an MPIJob of a launcher and one worker."""
    given = {"image": "app:1", "cpu": "1", "workers": "1", **flags}
    asked = {"type": "mpijob", "namespace": place, "name": name, "command": "sleep 1000"}
    return {**asked, "flags": given}


def mpijobs(team: Team) -> set[str]:
    found = team.cluster.admin.get("mpijobs", "-n", "team-two")
    return {each["metadata"]["name"] for each in found}


def test_a_job_is_submitted_from_the_page_as_its_user(
    team: Team, ruth: Visitor, eve: Visitor
) -> None:
    status, tried = eve.ask("/jobs?dryRun=true", "POST", new_job("walk"))
    assert (status, tried["valid"], tried["verdict"]["state"]) == (200, True, "starts"), tried
    assert "walk" not in mpijobs(team)
    issued = ruth.ask("/users/eve/kubeconfigs", "POST", {"lifetimeSeconds": 3600})[1]
    team.kubectl("eve", issued["kubeconfig"])
    words = shlex.split(tried["line"])[1:]
    printed = run_arena(
        *words[:2], "--dry-run", *words[2:], kubeconfig=team.cluster.folder / "eve.downloaded"
    )
    assert printed == tried["manifests"]

    assert eve.ask("/jobs", "POST", new_job("walk"))[0] == 201
    began = time.monotonic()
    wait_until("it is on the board", lambda: eve.ask("/jobs/team-two/mpijob/walk")[0] == 200, 60)
    print(f"on the board {time.monotonic() - began:.2f} s after the answer")
    assert time.monotonic() - began < 3
    wait_until(
        "it runs, as foretold",
        lambda: eve.ask("/jobs/team-two/mpijob/walk")[1]["job"]["status"] == "Running",
    )
    wait_until("the API server has noted it", lambda: EVES in team.asked("mpijobs"))
    assert set(team.asked("mpijobs", namespace="team-two")) == {EVES}
    status, answer = eve.ask("/jobs", "POST", new_job("walk"))
    assert (status, answer["code"]) == (409, "exists")
    clone = eve.ask("/jobs/team-two/mpijob/walk/clone")[1]
    asked = {**new_job("walk-2"), "flags": {"image": "app:1", "cpu": "1"}}
    assert clone == {"submission": asked, "lost": []}
    assert eve.ask("/jobs/team-two/mpijob/walk", "DELETE")[0] == 200


def test_a_serving_job_is_created_from_the_page_as_its_user(team: Team, eve: Visitor) -> None:
    flags = {"image": "app:1", "restful-port": "8000", "cpu": "1", "version": "v1"}
    asked = {"type": "custom-serving", "namespace": "team-two", "name": "web", "command": "sleep 9"}
    body = {**asked, "flags": flags}
    status, tried = eve.ask("/jobs?dryRun=true", "POST", body)
    assert (status, tried["valid"], tried["verdict"]["state"]) == (200, True, "starts"), tried
    status, answer = eve.ask("/jobs", "POST", body)
    assert (status, answer["created"]) == (201, tried["effects"]), answer
    [made] = team.cluster.admin.get("deployments", "-n", "team-two", "-l", "servingName=web")
    assert made["metadata"]["labels"]["arena.kubeflow.org/console-user"] == "eve"
    [service] = team.cluster.admin.get("services", "-n", "team-two", "-l", "servingName=web")
    assert service["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    status, answer = eve.ask("/jobs", "POST", {**body, "flags": {**flags, "version": "v2"}})
    assert status == 201, answer
    status, answer = eve.ask("/jobs", "POST", body)
    assert (status, answer["code"]) == (409, "exists")
    team.cluster.admin.run("delete", "deployments", "-n", "team-two", "-l", "servingName=web")


def test_what_the_api_server_refuses_of_a_job_stands_at_its_field(team: Team, eve: Visitor) -> None:
    """RBAC too: a namespace that only the console still takes for the user's."""
    long = new_job("long", annotation=["note=" + "x" * 263_000])
    status, tried = eve.ask("/jobs?dryRun=true", "POST", long)
    assert (status, tried["valid"]) == (200, False), tried
    status, answer = eve.ask("/jobs", "POST", long)
    assert (status, answer["code"]) == (422, "invalid"), answer
    for found in (tried["fields"], answer["fields"]):
        assert [each["path"] for each in found] == ["flags.annotation"], found
        assert "Too long" in found[0]["error"]
    status, answer = eve.ask("/jobs", "POST", new_job("far", "team-one"))
    assert (status, answer["error"]) == (404, "you have no namespace `team-one`")
    with nothing_makes_rights(team):
        binding = "eve:team-two:fairlead-researcher"
        team.cluster.admin.run("delete", "rolebinding", binding, "-n", "team-two")
        wait_until(
            "the API server has withdrawn the right",
            lambda: eve.ask("/jobs?dryRun=true", "POST", new_job("no"))[1]["fields"],
        )
        status, answer = eve.ask("/jobs", "POST", new_job("no"))
        assert (status, answer["code"]) == (403, "forbidden"), answer
        assert f'User "{EVES}" cannot create resource "mpijobs"' in answer["error"]
    wait_until(
        "eve may again",
        lambda: not eve.ask("/jobs?dryRun=true", "POST", new_job("no"))[1]["fields"],
    )
    assert mpijobs(team).isdisjoint(("long", "far", "no"))


# --- the quota tree -------------------------------------------------------------------------------


def test_of_two_administrators_the_second_sees_the_difference(team: Team, ruth: Visitor) -> None:
    admin = team.cluster.admin
    read = ruth.ask("/quota/tree")[1]["treeVersion"]
    edit = changed(("root.a.1", "min", "0"), ("root.b", "min", "20"))
    other = [{"op": "replace", "path": "/spec/root/children/1/min/cpu", "value": "25"}]
    admin.run(
        *("patch", TREES, "elasticquotatree", "-n", "kube-system", "--type=json"),
        *("-p", json.dumps(other)),
    )
    status, answer = put_tree(ruth, edit, read)
    assert (status, answer["code"]) == (409, "conflict"), answer
    now = {each["name"]: each for each in answer["current"]["items"]}
    assert now["root.b"]["bounds"][0]["minText"] == "25"
    assert admin.get(TREES)[0]["spec"]["root"]["children"][1]["min"]["cpu"] == "25"
    status, answer = put_tree(ruth, edit, answer["current"]["treeVersion"])
    assert status == 200, answer
    assert admin.get(TREES)[0]["spec"]["root"]["children"][1]["min"]["cpu"] == "20"
    assert ruth.rows(action="quota.tree.update")[-2:] == [
        ("refused", "conflict", "elasticquotatree"),
        ("ok", "", "elasticquotatree"),
    ]
    assert put_tree(ruth, list(orders(ROOT)))[0] == 200


def at_rest(team: Team, ruth: Visitor, truth: QuotaTruth, edit: list[Object]) -> Any:
    """The preview once all admitted pods are Ready, and the console has seen it."""

    def is_still() -> bool:
        pods = [
            *team.cluster.admin.get("pods", "-n", "others"),
            *team.cluster.admin.get("pods", "-n", "team-one"),
        ]
        return all(each["status"]["phase"] == "Running" for each in pods if is_admitted(each))

    def seen() -> bool:
        waiting = sum(truth.waiting().values())
        return bool(ruth.ask("/quota/waiting")[1]["total"] == waiting)

    wait_until("admitted pods run", is_still, 60)
    wait_until("the console has seen what waits", seen, 60)
    previews: list[Any] = []

    def is_same() -> bool:
        status, preview = put_tree(ruth, edit, dry=True)
        assert (status, preview["valid"]) == (200, True), preview
        previews.append({**preview, "whatIf": _undated(preview["whatIf"])})
        return len(previews) > 1 and previews[-1] == previews[-2]

    wait_until("the preview stays the same", is_same, 60)
    return previews[-1]


def _undated(effects: Object) -> Object:
    return {key: value for key, value in effects.items() if key not in ("generatedAt", "version")}


def test_the_preview_names_the_pods_that_saving_then_evicts(team: Team, ruth: Visitor) -> None:
    """`root.b` has borrowed all with pods of three sizes."""
    admin = team.cluster.admin
    truth = QuotaTruth(team.cluster, ROOT)
    places = {"root.a.1": "team-one", "root.a.2": "team-two", "root.b": "others"}

    def saved(edit: list[Object]) -> set[tuple[str, str]]:
        """What the preview names, once saving has evicted just this."""
        before = evicted(truth)
        preview = at_rest(team, ruth, truth, edit)
        named = {(each["namespace"], each["pod"]) for each in preview["whatIf"]["evicted"]}
        after = {each["name"]: each["runningAfter"] for each in preview["whatIf"]["leaves"]}
        wanted = truth.running() | {places[leaf]: number for leaf, number in after.items()}
        assert put_tree(ruth, edit)[0] == 200
        settled(truth, {place: number for place, number in wanted.items() if number})
        assert evicted(truth) - before == named, edit
        return named

    try:
        admin.create([deployment("guest", "others", 4, "4")])
        wait_until("guests run", lambda: truth.running().get("others", 0) >= 4, 60)
        admin.create([deployment("small", "others", 5, "2")])
        wait_until("small ones run", lambda: truth.running().get("others", 0) >= 9, 60)
        admin.create([deployment("late", "others", 6, "3")])
        # 26 of 40 are in use, and two at most by a job of another leaf: four of these have room.
        wait_until(
            lambda: f"four late ones run: {truth.running()}, {truth.waiting()}",
            lambda: (truth.running().get("others"), truth.waiting().get("others")) == (13, 2),
        )
        admin.create([deployment("host", "team-one", 3, "4")])
        wait_until("root.a.1 waits", lambda: truth.waiting().get("team-one") == 3, 60)
        a, leaf, b = "root.a", "root.a.1", "root.b"
        first = saved(changed((a, "min", "8"), (leaf, "min", "4")))
        wide = changed((a, "min", "16"), (leaf, "min", "12"), (b, "min", "24"))
        assert len(first | saved(wide)) > 2
        assert saved(changed((b, "max", "30"))) == set()
        assert len(saved(changed((b, "min", "36")))) > 0
    finally:
        truth.stop()
        assert put_tree(ruth, list(orders(ROOT)))[0] == 200
        admin.run("delete", "deployments", "--all", "-n", "others")
        admin.run("delete", "deployments", "--all", "-n", "team-one")


def test_a_leaf_is_renamed_with_its_group_and_gets_a_namespace(team: Team, ruth: Visitor) -> None:
    """The people controller follows, and Eve's rights stay meanwhile."""
    admin = team.cluster.admin

    def group_is_at(name: str) -> bool:
        groups = {each["metadata"]["name"]: each for each in admin.get("usergroups")}
        return bool(groups["team-b"]["spec"]["quotaNames"] == [name])

    def may(place: str) -> bool:
        bindings = admin.get("rolebindings", "-n", place)
        return f"eve:{place}:fairlead-researcher" in {each["metadata"]["name"] for each in bindings}

    def written(leaf: Object, **more: bool) -> Any:
        """The preview, once the tree with this leaf is written."""
        nodes = [each | leaf if each["name"] == "root.a.2" else each for each in orders(ROOT)]
        order = {"nodes": nodes, **more}
        version = ruth.ask("/quota/tree")[1]["treeVersion"]
        match = {"If_Match": f'"{version}"'}
        status, preview = ruth.ask("/quota/tree?dryRun=true", "PUT", order, **match)
        assert (status, preview["valid"]) == (200, True), preview
        status, answer = ruth.ask("/quota/tree", "PUT", order, **match)
        assert status == 200, answer
        wait_until(
            "the console has seen it",
            lambda: ruth.ask("/quota/tree")[1]["treeVersion"] == answer["treeVersion"],
        )
        return preview

    preview = written({"name": "root.a.two"})
    assert preview["groups"] == [{"group": "team-b", "before": "root.a.2", "after": "root.a.two"}]
    wait_until("the group follows", lambda: group_is_at("root.a.two"))
    assert may("team-two")

    wide = {"name": "root.a.two", "formerly": "root.a.two", "namespaces": ["team-two", "fresh"]}
    preview = written(wide, createNamespaces=True)
    parts = ("verb", "kind", "namespace", "name")
    planned = {tuple(each[part] for part in parts) for each in preview["effects"]}
    assert ("create", "Namespace", "", "fresh") in planned
    assert ("create", "RoleBinding", "fresh", "eve:fresh:fairlead-researcher") in planned
    assert account_of("ruth") in team.asked("namespaces")
    wait_until("Eve is let into the new namespace", lambda: may("fresh"))

    written({**wide, "namespaces": ["team-two"]})
    wait_until("Eve has no right there", lambda: not may("fresh"))
    written({"formerly": "root.a.two"})
    wait_until("the group is back", lambda: group_is_at("root.a.2"))


# --- killed ---------------------------------------------------------------------------------------


def begun(team: Team) -> int:
    """The number of first rows of the audit, which are stored before a write is sent."""
    with contextlib.closing(sqlite3.connect(team.store)) as store:
        return int(store.execute("select count(*) from audit where result = 'begun'").fetchone()[0])


def test_a_write_whose_console_is_killed_has_an_unknown_result(team: Team, ruth: Visitor) -> None:
    """Between the row of the audit and the answer of the API server."""
    api_server = team.cluster.components["kube-apiserver"]
    known = len(ruth.rows(action="nodes.update"))
    noted = begun(team)

    def ask() -> None:
        with contextlib.suppress(OSError):  # the console ends before it answers
            ruth.ask(f"/nodes/{NODE}", "PATCH", {"schedulable": True})

    api_server.freeze()
    try:
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        wait_until("the first row is stored", lambda: begun(team) == noted + 1, 30)
        team.console.kill()
        asking.join(HANG_SECONDS)
    finally:
        api_server.thaw()
    team.start(team.console)
    wait_until("the console knows its users", lambda: ruth.ask("/me")[0] == 200)
    rows = ruth.rows(action="nodes.update")
    assert rows[known:] == [("begun", "", NODE)]
