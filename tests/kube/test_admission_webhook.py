"""The webhook on a real API server, with the certificate that it creates itself: replicas, renewal,
and judgement of the quota tree, of users and of groups.
"""

from __future__ import annotations

import os
import signal
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.x509 import DNSName, SubjectAlternativeName, load_pem_x509_certificate
from tests.contracts.api_client import Answer, ApiClient, until
from tests.kube.addresses import free_port
from tests.kube.clocks import HOUR
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import DEPLOY, Object, of_file, on_this_machine, webhook_process
from tests.kube.kubectl import KubectlError
from tests.kube.quota_definition import definition

from fairlead.apps.issued_certificate import IssuedCertificate, issue

TREES = "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees"
SECRET = "/api/v1/namespaces/fairlead-system/secrets/fairlead-admission-webhook"
CONFIGURATION = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/fairlead-quota-tree"
)


class Replicas:
    def __init__(
        self, cluster: ControlPlane, ports: tuple[int, int], processes: tuple[Component, Component]
    ) -> None:
        self.cluster = cluster
        self.api = ApiClient("real", cluster.kubeconfig)
        self.ports = ports
        self.processes = processes

    def shown(self) -> list[str]:
        return [ssl.get_server_certificate(("127.0.0.1", port), timeout=10) for port in self.ports]

    def propose(self, root: Object, name: str = "elasticquotatree") -> Answer:
        tree = {
            "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
            "kind": "ElasticQuotaTree",
            "metadata": {"name": name},
        }
        return self.api.post(TREES, {**tree, "spec": {"root": root}}, dryRun="All")


@pytest.fixture(scope="module")
def replicas() -> Iterator[Replicas]:
    """Two replicas that start one after the other; the API server calls the first. The clock of the
    first is an hour ahead, that of the second an hour behind.
    """
    with running_control_plane() as cluster:
        cluster.admin.run("apply", "-f", str(DEPLOY / "namespace.yaml"))
        cluster.admin.apply([definition()])
        ports = (free_port(), free_port())
        cluster.admin.apply([each for each in of_file("people.yaml") if is_of_people(each)])
        found = [
            each
            for name in ("admission-webhook", "quota-webhook", "people-webhook")
            for each in of_file(f"{name}.yaml")
        ]
        cluster.admin.apply([on_this_machine(each, ports[0]) for each in found])
        with (
            webhook_process(cluster, ports[0], HOUR) as one,
            webhook_process(cluster, ports[1], -HOUR) as other,
        ):
            both = Replicas(cluster, ports, (one, other))
            until("trees are judged", lambda: both.propose(broken()).status == 403)
            yield both


def is_of_people(obj: Object) -> bool:
    return obj["kind"] in ("Namespace", "CustomResourceDefinition")


def root(*children: Object) -> Object:
    return {"name": "root", "min": {"cpu": "40"}, "max": {"cpu": "40"}, "children": list(children)}


def leaf(name: str, cpu: str, *namespaces: str, **more: Any) -> Object:
    return {
        "name": name,
        "min": {"cpu": cpu},
        "max": {"cpu": "40"},
        "namespaces": list(namespaces),
        **more,
    }


def broken() -> Object:
    return root(leaf("root.a", "25"), leaf("root.b", "20"))


def test_replicas_show_one_certificate(replicas: Replicas) -> None:
    assert len(set(replicas.shown())) == 1


def test_a_fault_is_refused_in_one_sentence(replicas: Replicas) -> None:
    answer = replicas.propose(broken())
    assert (answer.status, answer.reason) == (403, "Forbidden")
    begins = (
        'admission webhook "quota-tree.fairlead.io" denied the request: SumOfMinExceedsParent: '
        "root: "
    )
    assert begins in answer.message
    assert all(word in answer.message for word in ("45 cpu", "root.a 25", "root.b 20", "40"))
    assert "NotTheTree" in replicas.propose(root(), "another").message


def test_what_is_unexpected_is_reported_and_not_refused(replicas: Replicas) -> None:
    answer = replicas.propose(root(leaf("root.a", "40", "nowhere")))
    assert answer.status == 201, answer.message
    assert "NoSuchNamespace" in answer.headers.get("warning", "")


# --- users and groups -----------------------------------------------------------------------------

PEOPLE = "/apis/fairlead.io/v1/namespaces/kube-ai"


def user(name: str, *groups: str, role: str = "researcher", **more: Any) -> Object:
    spec = {"userName": name, "userId": name, "apiRoles": [role], "groups": list(groups), **more}
    return {
        "apiVersion": "fairlead.io/v1",
        "kind": "User",
        "metadata": {"name": name, "namespace": "kube-ai"},
        "spec": spec,
    }


def group(name: str, leaf: str, title: str = "") -> Object:
    return {
        "apiVersion": "fairlead.io/v1",
        "kind": "UserGroup",
        "metadata": {"name": name, "namespace": "kube-ai"},
        "spec": {"groupName": title or name, "quotaNames": [leaf]},
    }


@pytest.fixture
def people(replicas: Replicas) -> Iterator[Replicas]:
    """Leaves `root.a` and `root.b`; group team-a on the first, with Bob; Ann, an administrator."""
    admin, tree = replicas.cluster.admin, root(leaf("root.a", "10"), leaf("root.b", "10"))
    admin.apply(
        [
            {
                "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
                "kind": "ElasticQuotaTree",
                "metadata": {"name": "elasticquotatree", "namespace": "kube-system"},
                "spec": {"root": tree},
            }
        ]
    )
    for each in (group("team-a", "root.a"), user("bob", "team-a"), user("ann", role="admin")):
        admin.apply([each])
    yield replicas
    for path in ("users/bob", "users/ann", "users/eve", "usergroups/team-a"):
        forced = {"metadata": {"annotations": {"fairlead.io/force-delete": "true"}}}
        replicas.api.patch(f"{PEOPLE}/{path}", forced)
        replicas.api.ask("DELETE", f"{PEOPLE}/{path}")
    replicas.api.ask("DELETE", f"{TREES}/elasticquotatree")


BEGINS = 'admission webhook "people.fairlead.io" denied the request: '


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (group("late", "root.a"), "the leaf root.a belongs to the group team-a"),
        (group("high", "root"), "the node root has children; only a leaf can have a group"),
        (group("lost", "root.c"), "the quota tree has no node root.c"),
        (group("other", "root.b", "Team-A"), "the group team-a is called `Team-A` already"),
        (user("eve", "none"), "there is no group none"),
        (user("eve"), "the researcher eve needs a group, which brings a namespace"),
        (
            user("ann", "team-a"),
            "ann is the last administrator that is not disabled",
        ),
        (
            user("ann", role="admin", disabled=True),
            "ann is the last administrator that is not disabled",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_kubectl_apply_is_refused_with_the_sentence_of_the_command(
    people: Replicas, obj: Object, why: str
) -> None:
    with pytest.raises(KubectlError) as caught:
        people.cluster.admin.apply([obj])
    assert f"{BEGINS}{why}" in str(caught.value)


def test_deletions_of_users_and_groups_are_judged(people: Replicas) -> None:
    admin, api = people.cluster.admin, people.api
    kept = {"spec": {"deletable": False}}
    assert api.patch(f"{PEOPLE}/users/bob", kept).status == 200
    for name, why in (
        ("usergroup/team-a", "these users list the group team-a: bob"),
        ("user/ann", "ann is the last administrator that is not disabled"),
        ("user/bob", "bob has `deletable: false`"),
    ):
        with pytest.raises(KubectlError) as caught:
            admin.run("delete", "-n", "kube-ai", name)
        assert f"{BEGINS}{why}" in str(caught.value)
    admin.run("annotate", "-n", "kube-ai", "user/bob", "fairlead.io/force-delete=true")
    admin.run("delete", "-n", "kube-ai", "user/bob", "usergroup/team-a")
    admin.apply([user("eve", role="admin")])
    admin.run("delete", "-n", "kube-ai", "user/ann")


def test_what_the_controller_writes_is_not_judged(people: Replicas) -> None:
    """A group may vanish past the webhook; the finalizer of its users can be written all the
    same, and a leaf that is renamed takes its group along.
    """
    api = people.api
    path = f"{PEOPLE}/usergroups/team-a"
    status = {"status": {"renamedTo": "root.new"}}
    assert api.patch(f"{path}/status", status).status == 200
    moved = api.patch(path, {"spec": {"quotaNames": ["root.b"]}})
    assert moved.status in (403, 422), moved.body
    moved = api.patch(path, {"spec": {"quotaNames": ["root.new"]}})
    assert moved.status == 200, moved.message
    hook = "validatingwebhookconfigurations"
    configuration = f"/apis/admissionregistration.k8s.io/v1/{hook}/fairlead-people"
    before = api.get(configuration).body
    api.ask("DELETE", configuration)
    until(
        "the webhook is not asked",
        lambda: api.ask("DELETE", path, query={"dryRun": "All"}).status == 200,
    )
    api.ask("DELETE", path)
    before["metadata"] = {
        key: each for key, each in before["metadata"].items() if key in ("name", "labels")
    }
    assert api.post(configuration.rpartition("/")[0], before).status == 201
    until(
        "the webhook is asked again",
        lambda: api.post(f"{PEOPLE}/users", user("eve", "none"), dryRun="All").status == 403,
    )
    held = {"metadata": {"finalizers": ["fairlead.io/user"]}}
    assert api.patch(f"{PEOPLE}/users/bob", held).status == 200
    free: Object = {"metadata": {"finalizers": []}}
    assert api.patch(f"{PEOPLE}/users/bob", free).status == 200


# --- quota trees ----------------------------------------------------------------------------------


def test_a_namespace_with_running_pods_does_not_move(replicas: Replicas) -> None:
    api, container = replicas.api, {"name": "a", "image": "app:1"}
    assert api.post("/api/v1/namespaces", {"metadata": {"name": "busy"}}).status == 201
    until(
        "it has an account",
        lambda: api.get("/api/v1/namespaces/busy/serviceaccounts/default").status == 200,
    )
    assert (
        api.post(
            "/api/v1/namespaces/busy/pods",
            {"metadata": {"name": "p"}, "spec": {"containers": [container]}},
        ).status
        == 201
    )
    status = {"status": {"phase": "Running"}}
    assert api.patch("/api/v1/namespaces/busy/pods/p/status", status).status == 200
    joined = replicas.propose(root(leaf("root.a", "20", "busy")))
    assert (joined.status, "NamespaceBusy" in joined.message) == (403, True), joined.message
    api.ask("DELETE", "/api/v1/namespaces/busy/pods/p", {"gracePeriodSeconds": 0})
    assert replicas.propose(root(leaf("root.a", "20", "busy"))).status == 201


def test_the_tree_does_not_go_while_a_leaf_has_namespaces(replicas: Replicas) -> None:
    admin, api = replicas.cluster.admin, replicas.api
    tree = {"apiVersion": "scheduling.sigs.k8s.io/v1beta1", "kind": "ElasticQuotaTree"}
    admin.apply(
        [
            {
                **tree,
                "metadata": {"name": "elasticquotatree", "namespace": "kube-system"},
                "spec": {"root": root(leaf("root.a", "20", "x"))},
            }
        ]
    )
    gone = api.delete(f"{TREES}/elasticquotatree")
    assert (gone.status, "root.a" in gone.message) == (403, True)
    emptied = api.patch(f"{TREES}/elasticquotatree", {"spec": {"root": root(leaf("root.a", "20"))}})
    assert emptied.status == 200, emptied.message
    assert api.delete(f"{TREES}/elasticquotatree").status == 200


def test_a_new_certificate_is_shown_without_a_refused_question(replicas: Replicas) -> None:
    """The Secret is deleted. One replica creates another certificate, the other reads it, and the
    API server trusts both all the time.
    """
    before, bundle = (
        replicas.shown()[0],
        replicas.api.get(CONFIGURATION).body["webhooks"][0]["clientConfig"]["caBundle"],
    )
    assert replicas.api.delete(SECRET).status == 200
    for process in replicas.processes:
        os.kill(process.pid, signal.SIGHUP)

    def is_renewed() -> bool:
        assert replicas.propose(broken()).status == 403
        now = replicas.shown()
        return now[0] == now[1] != before

    until("another certificate is shown", is_renewed)
    assert replicas.propose(broken()).status == 403
    assert replicas.api.get(CONFIGURATION).body["webhooks"][0]["clientConfig"]["caBundle"] != bundle


def test_a_spoiled_bundle_is_put_right(replicas: Replicas) -> None:
    configuration = replicas.api.get(CONFIGURATION).body
    right = configuration["webhooks"][0]["clientConfig"].pop("caBundle")
    assert replicas.api.put(CONFIGURATION, configuration).status == 200
    os.kill(replicas.processes[1].pid, signal.SIGHUP)
    until(
        "it is put right",
        lambda: (
            replicas.api.get(CONFIGURATION).body["webhooks"][0]["clientConfig"].get("caBundle")
            == right
        ),
    )
    until("trees are judged", lambda: replicas.propose(broken()).status == 403)


def test_an_expired_certificate_is_replaced_and_lets_nothing_pass(replicas: Replicas) -> None:
    """The certificate in the Secret ended ten days ago. Until a replica shows another one, the API
    server refuses all trees.
    """
    secret = replicas.api.get(SECRET).body
    kept = {key: b64decode(text) for key, text in secret["data"].items()}
    before = IssuedCertificate(kept["ca.crt"], kept["ca.key"], kept["tls.crt"], kept["tls.key"])
    [host] = (
        load_pem_x509_certificate(before.certificate)
        .extensions.get_extension_for_class(SubjectAlternativeName)
        .value.get_values_for_type(DNSName)
    )
    old = issue(host, time.time() - 100 * 86400, before)
    parts = {"tls.crt": old.certificate, "tls.key": old.key}
    secret["data"] |= {key: b64encode(pem).decode() for key, pem in parts.items()}
    assert replicas.api.put(SECRET, secret).status == 200
    for process in replicas.processes:
        os.kill(process.pid, signal.SIGHUP)

    def is_renewed() -> bool:
        assert replicas.propose(broken()).status != 201
        end = load_pem_x509_certificate(replicas.shown()[0].encode()).not_valid_after_utc
        return end.timestamp() > time.time() and replicas.propose(broken()).status == 403

    until("another certificate is shown", is_renewed)


def test_killed_or_frozen_it_lets_nothing_pass(replicas: Replicas) -> None:
    called = replicas.processes[0]
    called.freeze()
    try:
        assert replicas.propose(broken()).status == 500
    finally:
        called.thaw()
    until("trees are judged", lambda: replicas.propose(broken()).status == 403)
    called.kill()
    assert replicas.propose(broken()).status == 500
    called.start()
    until("trees are judged", lambda: replicas.propose(broken()).status == 403)


def test_after_the_api_server_was_away_it_judges_as_before(replicas: Replicas) -> None:
    cluster = replicas.cluster
    cluster.components["kube-apiserver"].kill()
    cluster.start_component("kube-apiserver")
    until("trees are judged", lambda: replicas.propose(broken()).status == 403)
    assert replicas.propose(root(leaf("root.a", "20"))).status == 201
