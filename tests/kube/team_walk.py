"""The way of a team from its group to its end, in the real world and in the simulated one.

Oracles are kubectl, and `quota_truth`, which watches the pods of the API server.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.kube.quota_line import TREES, bounded, deployment
from tests.kube.quota_truth import QuotaTruth
from tests.kube.servers import fairlead_answer, run_arena
from tests.kube.team_line import (
    Object,
    TeamPlace,
    Visitor,
    account_of,
    is_refused,
    orders,
    server_of,
)
from tests.waiting import wait_until

ROOT = bounded(
    "root",
    40,
    40,
    children=[
        bounded(
            "root.a",
            4,
            40,
            children=[
                bounded("root.a.1", 0, 40, ["team-one"]),
                bounded("root.a.2", 4, 40, ["team-two"]),
            ],
        ),
        bounded("root.b", 26, 40, ["others"]),
    ],
)


def bound(team: TeamPlace, name: str) -> bool:
    path = "jsonpath={.status.conditions[0].reason}"
    return team.cluster.admin.run("get", "users", name, "-n", "kube-ai", "-o", path) == "Bound"


def changed(*changes: tuple[str, str, str]) -> list[Object]:
    """The tree of this module with other bounds: (node, `min` or `max`, cpu)."""
    nodes = list(orders(ROOT))
    for name, bound_, cpu in changes:
        next(each for each in nodes if each["name"] == name)[bound_]["cpu"] = cpu
    return nodes


def put_tree(
    who: Visitor, nodes: list[Object], version: str = "", *, dry: bool = False
) -> tuple[int, Any]:
    """`version`: "" = the present one, of which the snapshot may be a moment behind."""
    path = "/quota/tree" + ("?dryRun=true" if dry else "")
    sent = version or who.ask("/quota/tree")[1]["treeVersion"]
    status, answer = who.ask(path, "PUT", {"nodes": nodes}, If_Match=f'"{sent}"')
    if not version and answer.get("code") == "conflict":
        sent = answer["current"]["treeVersion"]
        status, answer = who.ask(path, "PUT", {"nodes": nodes}, If_Match=f'"{sent}"')
    return status, answer


def submit(team: TeamPlace, kubeconfig: Any, name: str, place: str, cpu: str) -> None:
    """An MPIJob of a launcher and one worker."""
    run_arena(
        *("submit", "mpijob", f"--name={name}", "--image=app:1", f"--cpu={cpu}", "--workers=1"),
        *("-n", place, "sleep 1000"),
        kubeconfig=kubeconfig,
    )


def walk(team: TeamPlace, ruth: Visitor) -> None:
    """The whole way of docs/how-to/users.md, by the console's pages, kubectl and arena: from a
    group to a job that runs, until its user is disabled. `ruth`: an administrator.
    """
    admin = team.cluster.admin
    truth = QuotaTruth(team.cluster, ROOT)
    try:
        admin.create([deployment("guest", "others", 8, "5")])
        wait_until("root.b borrows all", lambda: truth.running() == {"others": 8})

        assert ruth.ask("/groups", "POST", {"groupName": "teamA", "leaf": "root.a.1"})[0] == 201
        made = ruth.ask("/users", "POST", {"userName": "Bob", "groups": ["teama"]})
        assert (made[0], made[1]["id"]) == (201, "bob"), made
        wait_until("Bob is bound", lambda: bound(team, "bob"))
        status, issued = ruth.ask("/users/bob/kubeconfigs", "POST", {"lifetimeSeconds": 3600})
        assert status == 201, issued
        assert server_of(issued["kubeconfig"]) == team.cluster.server
        outside = team.kubectl("bob", issued["kubeconfig"])
        assert account_of("bob") in outside.run("auth", "whoami")
        for words in (("get", "pods", "-n", "others"), ("get", "secrets", "-A")):
            assert is_refused(outside, *words)

        kubeconfig = team.cluster.folder / "bob.downloaded"
        submit(team, kubeconfig, "first", "team-one", "5")
        bob = team.visitor("bob")
        job = "/jobs/team-one/mpijob/first"
        wait_until("the job is on Bob's board", lambda: bob.ask(job)[0] == 200)
        wait_until("its pods wait", lambda: truth.waiting().get("team-one") == 2)

        def why() -> str:
            return json.dumps(bob.ask(f"{job}/why")[1]["waiting"])

        wait_until("the page has the reason in numbers", lambda: "root.a.1" in why())
        shown = why()
        assert "others" not in shown and "root.b" not in shown

        explained = run_arena("get", "first", "--explain", kubeconfig=kubeconfig)
        assert "root.a.1 uses 0 of guaranteed 0" in explained
        assert "first" in run_arena("list", kubeconfig=kubeconfig)
        quota_commands_answer(team, kubeconfig)

        flags = {"image": "app:1", "cpu": "5", "workers": "1"}
        order = {"type": "mpijob", "namespace": "team-one", "command": "sleep 1000", "flags": flags}
        status, shown = bob.ask("/jobs?dryRun=true", "POST", {**order, "name": "second"})
        assert (status, shown["valid"], shown["verdict"]["state"]) == (200, True, "waits"), shown
        status, answer = bob.ask("/jobs", "POST", {**order, "name": "second"})
        assert status == 201, answer
        status, answer = bob.ask("/jobs", "POST", {**order, "name": "other", "namespace": "others"})
        assert (status, answer["code"]) == (404, "not-found"), answer
        assert [each["metadata"]["name"] for each in admin.get("mpijobs", "-n", "others")] == []
        stamp = "arena.kubeflow.org/console-user"
        made = admin.get("mpijobs", "-n", "team-one")
        assert [each["metadata"]["labels"][stamp] for each in made] == ["bob", "bob"]
        wait_until("both wait", lambda: truth.waiting().get("team-one") == 4)
        wait_until("the console has seen it", lambda: ruth.ask("/quota/waiting")[1]["total"] == 2)

        raised = changed(
            ("root.a", "min", "24"), ("root.a.1", "min", "20"), ("root.b", "min", "16")
        )
        status, preview = put_tree(ruth, raised, dry=True)
        assert (status, preview["valid"]) == (200, True), preview
        named = {(each["namespace"], each["pod"]) for each in preview["whatIf"]["evicted"]}
        assert len(named) == 4 and {space for space, _ in named} == {"others"}
        assert put_tree(ruth, raised)[0] == 200
        wait_until("Bob's jobs run", lambda: truth.running().get("team-one") == 4)
        assert evicted(truth) == named
        wait_until(
            "the page has it as running",
            lambda: bob.ask(job)[1]["job"]["status"] == "Running",
        )

        gone = {"userName": "Bob", "role": "researcher", "groups": ["teama"], "disabled": True}

        def disabled() -> bool:  # a status that is written meanwhile may be a conflict
            version = ruth.ask("/users/bob")[1]["version"]
            return ruth.ask("/users/bob", "PUT", gone, If_Match=version)[0] == 200

        wait_until("Bob is disabled", disabled, 30)
        began = time.monotonic()
        wait_until("kubectl is refused", lambda: is_refused(outside, "get", "pods"), 60, 0.05)
        print(
            f"rights gone {time.monotonic() - began:.1f} s after the answer, with kubectl's start"
        )
        assert bob.ask(job)[0] in (401, 403)
    finally:
        truth.stop()
        assert put_tree(ruth, list(orders(ROOT)))[0] == 200
        admin.run("delete", "mpijobs", "--all", "-n", "team-one", "--ignore-not-found")
        admin.run("delete", "deployment", "guest", "-n", "others", "--ignore-not-found")


def quota_commands_answer(team: TeamPlace, kubeconfig: Path) -> None:
    """With the rights of Bob, who reads team-one alone: what conditions and status contain."""
    admin = team.cluster.admin
    waiting = admin.get("pods", "-n", "team-one")
    conditions = [
        each
        for pod in waiting
        for each in pod["status"]["conditions"]
        if each["type"] == "fairlead.io/QuotaAdmitted"
    ]
    why = fairlead_answer(kubeconfig, "quota", "why", "team-one/first", "-o", "json")
    assert why.returncode == 0, why.stderr
    [item] = json.loads(why.stdout)["items"]
    assert (item["kind"], item["leaf"], item["isReported"], item["units"]) == (
        *("MPIJob", "root.a.1"),
        *(True, []),
    )
    assert item["reason"] in {each["reason"] for each in conditions}
    assert item["message"] in {f"2 of 2 pods wait: {each['message']}" for each in conditions}
    assert item["usage"][0]["used"] == "0"

    def written() -> dict[str, str]:
        rows = admin.get(TREES, "-n", "kube-system")[0]["status"]["nodes"]
        return {each["name"]: each["used"].get("cpu", "0") for each in rows}

    wait_until("the status has what runs", lambda: written()["root.b"] == "40")
    tree = fairlead_answer(kubeconfig, "quota", "tree", "-o", "json")
    assert tree.returncode == 0, tree.stderr
    rows = json.loads(tree.stdout)["nodes"]
    assert {each["name"]: each["used"].get("cpu", "0") for each in rows} == written()
    assert tree.stderr.count("\n") == 1, "a warning of each kind that Bob may not read"
    others = fairlead_answer(kubeconfig, "quota", "why", "others/guest")
    assert others.returncode != 0 and 'in the namespace "others"' in others.stderr
    plan = fairlead_answer(kubeconfig, "quota", "plan")
    assert plan.returncode != 0 and "`fairlead quota why NAMESPACE/POD`" in plan.stderr


def evicted(truth: QuotaTruth) -> set[tuple[str, str]]:
    """Namespace and name."""
    found = set()
    for each in truth.evicted.values():
        space, _, name = each.rpartition("/")
        found.add((space, name))
    return found
