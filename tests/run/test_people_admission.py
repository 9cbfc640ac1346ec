"""The laptop's API server judges users, groups and the tokens of users as the webhook and the
policy `fairlead-renewal` do (tests/kube/test_admission_webhook.py and test_people.py have the
sentences of the real ones).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.arena import environment, run_main
from tests.cli.people.people_cluster import GROUPS, USERS, Cluster
from tests.contracts.simulated import simulated_server
from tests.sim.objects import StillClock

from fairlead.run.hooks.people_admission import PeoplePolicies
from fairlead.run.quota_demo import SPACES, demo_tree
from fairlead.wire.people.definitions import people_definitions
from fairlead_sim.store.cluster import StoredCluster

Object = dict[str, Any]
TOKENS = "/api/v1/namespaces/kube-ai/serviceaccounts"


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Cluster]:
    """Group teamA on root.a.1 with Bob; Ann, the one administrator."""
    with simulated_server(tmp_path, StillClock()) as server:

        def begin(cluster: StoredCluster) -> None:
            for name in ("kube-ai", *SPACES):
                cluster.create(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                )
            for obj in (*people_definitions(), demo_tree("leaf")):
                cluster.create(obj)
            cluster.admission = PeoplePolicies(cluster)

        server.do(begin)
        made = Cluster(server, tmp_path)
        made.done("group", "create", "teamA", "--leaf", "root.a.1")
        made.done("user", "create", "Bob", "--group", "teamA")
        made.done("user", "create", "Ann", "--role", "admin")
        made.make_bound("bob", "namespace1")
        made.make_bound("ann")
        yield made


def user(name: str, *groups: str, **more: Any) -> Object:
    spec = {"userName": name, "userId": name, "apiRoles": ["researcher"], "groups": [*groups]}
    return {"metadata": {"name": name}, "spec": {**spec, **more}}


def group(name: str, leaf: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"groupName": name, "quotaNames": [leaf]}}


@pytest.mark.parametrize(
    ("path", "obj", "why"),
    [
        (GROUPS, group("late", "root.a.1"), "the leaf root.a.1 belongs to the group teama"),
        (GROUPS, group("high", "root.a"), "the node root.a has children; only a leaf"),
        (GROUPS, group("lost", "root.c"), "the quota tree has no node root.c"),
        (USERS, user("eve", "none"), "there is no group none"),
        (USERS, user("eve"), "the researcher eve needs a group"),
    ],
    ids=lambda each: each if isinstance(each, str) and " " in each else "",
)
def test_a_client_that_is_no_command_is_refused(
    laptop: Cluster, path: str, obj: Object, why: str
) -> None:
    answer = laptop.api.ask("POST", path, obj)
    assert answer.status == 403, answer.body
    assert f'admission webhook "people.fairlead.io" denied the request: {why}' in answer.message


def test_deletions_are_judged_as_by_the_webhook(laptop: Cluster) -> None:
    """The same cases as on the real API server, in `tests/kube/test_admission_webhook.py`."""
    merge = {"Content-Type": "application/merge-patch+json"}
    kept = {"spec": {"deletable": False}}
    assert laptop.api.ask("PATCH", f"{USERS}/bob", kept, headers=merge).status == 200
    for path, why in (
        (f"{GROUPS}/teama", "these users list the group teama: bob"),
        (f"{USERS}/ann", "ann is the last administrator that is not disabled"),
        (f"{USERS}/bob", "bob has `deletable: false`"),
        (USERS, "ann is the last administrator that is not disabled"),
    ):
        answer = laptop.api.ask("DELETE", path)
        assert answer.status == 403, answer.body
        assert f'admission webhook "people.fairlead.io" denied the request: {why}' in answer.message
        assert laptop.api.ask("DELETE", path, query={"dryRun": "All"}).status == 403
    forced = {"metadata": {"annotations": {"fairlead.io/force-delete": "true"}}}
    assert laptop.api.ask("PATCH", f"{USERS}/bob", forced, headers=merge).status == 200
    assert laptop.api.ask("DELETE", f"{USERS}/bob").status == 200
    free = {"metadata": {"finalizers": []}}  # the people controller would do this
    assert laptop.api.ask("PATCH", f"{USERS}/bob", free, headers=merge).status == 200
    assert laptop.api.ask("DELETE", f"{GROUPS}/teama").status == 200
    laptop.done("user", "create", "Ada", "--role", "admin")
    assert laptop.api.ask("DELETE", f"{USERS}/ann").status == 200


def test_the_last_administrator_stays_and_a_finalizer_is_written(laptop: Cluster) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}

    def patch(body: Object) -> int:
        return laptop.api.ask("PATCH", f"{USERS}/ann", body, headers=headers).status

    assert patch({"spec": {"disabled": True}}) == 403
    assert patch({"metadata": {"finalizers": ["example.com/held", "fairlead.io/user"]}}) == 200
    laptop.done("user", "create", "Ada", "--role", "admin")
    assert patch({"spec": {"disabled": True}}) == 200


def test_a_token_is_renewed_and_no_other_is_issued_to_its_user(
    laptop: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "token.json"
    config = yaml.safe_load(laptop.done("kubeconfig", "create", "bob", "--exec", str(file)))
    kept = json.loads(file.read_text(encoding="utf-8"))
    first = kept["credential"]["token"]
    cluster = config["clusters"][0]["cluster"]
    info = {"kind": "ExecCredential", "spec": {"cluster": cluster}}
    env = environment(tmp_path, KUBECONFIG="", KUBERNETES_EXEC_INFO=json.dumps(info))
    # the cluster's clock stands still in the past, so the token has expired for this machine
    ended = run_main("fairlead", ("login", str(file)), env)
    assert ended.returncode == 0, ended.stderr
    second = json.loads(ended.stdout)["status"]["token"]
    assert second not in (first, "")
    bob = laptop.api.as_stranger(second)
    for path, spec, why in (
        (f"{TOKENS}/bob/token", {}, "is bound to the Secret of its credential"),
        (f"{TOKENS}/ann/token", {}, 'cannot create resource "serviceaccounts/token"'),
    ):
        answer = bob.ask("POST", path, {"spec": spec})
        assert (answer.status, why in answer.message) == (403, True), answer.message
    laptop.done("kubeconfig", "delete", kept["credential"]["secret"])
    assert bob.ask("GET", "/api/v1/namespaces/namespace1/pods").status == 401
    again = run_main("fairlead", ("login", str(file)), env)
    assert (again.returncode, again.stdout) == (1, "")
    assert "it was revoked" in again.stderr
