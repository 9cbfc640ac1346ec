"""Contract: what an API server refuses of `pods/exec` before it asks a kubelet. The same
assertions over both worlds.
"""

from __future__ import annotations

import base64

import pytest
from tests.contracts.api_client import Answer, ApiClient
from tests.contracts.objects import pod, pods
from tests.contracts.rights import binding, bindings, made, role, roles, rule, until_allowed

ASKED = "command=ls&stdout=true"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}


def ask(api: ApiClient, space: str, name: str, query: str = ASKED, method: str = "GET") -> Answer:
    headers = UPGRADE if method == "GET" else {}
    return api.ask(method, f"{pods(space, name, 'exec')}?{query}", headers=headers)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_the_pod_does_not_allow(api: ApiClient, space: str, method: str) -> None:
    two = [{"name": name, "image": "train:1"} for name in ("main", "beside")]
    init = [{"name": "setup", "image": "train:1"}]
    made(api.post(pods(space), pod("a")))
    made(api.post(pods(space), pod("b", spec={"containers": two, "initContainers": init})))
    absent = ask(api, space, "c", method=method)
    assert (absent.status, absent.message) == (404, 'pods "c" not found')
    refused = [
        ask(api, space, name, query, method)
        for name, query in (
            ("a", ASKED),
            ("a", f"{ASKED}&container=x"),
            ("a", f"{ASKED}&container=main"),
            ("b", ASKED),
            ("b", f"{ASKED}&container=setup"),
        )
    ]
    assert {(each.status, each.reason) for each in refused} == {(400, "BadRequest")}
    assert [each.message for each in refused] == [
        "pod a does not have a host assigned",
        "container x is not valid for pod a",
        "pod a does not have a host assigned",
        "a container name must be specified for pod b, choose one of: [setup main beside]",
        "pod b does not have a host assigned",
    ]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_other_methods(api: ApiClient, space: str, method: str) -> None:
    made(api.post(pods(space), pod("a")))
    answer = ask(api, space, "a", method=method)
    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")
    assert answer.message == "the server does not allow this method on the requested resource"


def test_a_websocket_needs_the_rights_to_get_and_to_create(api: ApiClient, space: str) -> None:
    """One is opened by GET; who may only get `pods/exec` runs nothing."""
    made(api.post(pods(space), pod("a")))
    for verb in ("get", "create", "get create"):
        name = verb.replace(" ", "-")
        made(api.post(roles(space), role(name, rule(verb, "pods/exec"))))
        made(api.post(bindings(space), binding(name, name, name)))
        until_allowed(api, name, verb.split()[-1], "pods", space, subresource="exec")
    answers = {
        (name, method): ask(api.as_user(name), space, "a", method=method)
        for name in ("get", "create", "get-create")
        for method in ("GET", "POST")
    }
    assert {key: each.status for key, each in answers.items()} == {
        ("get", "GET"): 403,
        ("get", "POST"): 403,
        ("create", "GET"): 403,
        ("create", "POST"): 400,
        ("get-create", "GET"): 400,
        ("get-create", "POST"): 400,
    }
    words = f'resource "pods/exec" in API group "" in the namespace "{space}"'
    assert answers["create", "GET"].message == (
        f'pods "a" is forbidden: User "create" cannot get {words}'
    )
    assert answers["get", "POST"].message == (
        f'pods "a" is forbidden: User "get" cannot create {words}'
    )
    found = answers["get", "GET"]
    assert (found.message, found.reason) == ('pods "a" is forbidden: ', "Forbidden")
    assert found.body["details"] == {"name": "a", "kind": "pods"}
