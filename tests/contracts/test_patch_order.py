"""Contract: the order of a list after a patch that merges it. The same patch is sent to both
servers.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contracts.api_client import APPLY, STRATEGIC, ApiClient
from tests.contracts.objects import Object, deployment


def _named(*names: str, **more: Any) -> list[Object]:
    return [{"name": name, **more} for name in names]


def _running(*names: str, **more: Any) -> list[Object]:
    return _named(*names, image="i:1", **more)


def _order(field: str, *names: str, key: str = "name") -> Object:
    return {f"$setElementOrder/{field}": [{key: name} for name in names]}


def _main(**more: Any) -> Object:
    return {"containers": [{"name": "main", **more}]}


_PORTS = [{"containerPort": 80}, {"containerPort": 81}]
_VOLUMES = [{"name": name, "emptyDir": {}} for name in ("a", "b")]
_MOUNTS = [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b"}]
_TOLERATIONS = [{"key": key, "operator": "Exists"} for key in ("a", "b")]
_ENV = [{"name": name, "value": "1"} for name in ("A", "B")]
_TWO, _THREE = (
    {"containers": _running("main", "two")},
    {"containers": _running("main", "two", "three")},
)
_CASES: dict[str, tuple[Object, Object]] = {
    "one container more": ({}, {"containers": _running("new")}),
    "two containers more": ({}, {"containers": _running("new", "newer")}),
    "one container more beside two": (_TWO, {"containers": _running("new")}),
    "one changed and one more": (
        _TWO,
        {"containers": [*_running("new"), {"name": "two", "image": "i:2"}]},
    ),
    "one changed and then one more": (
        _TWO,
        {"containers": [{"name": "two", "image": "i:2"}, *_running("new")]},
    ),
    "the first changed and one more": (
        _TWO,
        {"containers": [{"name": "main", "image": "i:2"}, *_running("new")]},
    ),
    "two changed in another order": (
        _THREE,
        {"containers": [{"name": "three", "image": "i:2"}, {"name": "main", "image": "i:2"}]},
    ),
    "one deleted": (_THREE, {"containers": [{"name": "two", "$patch": "delete"}]}),
    "one deleted and one more": (
        _THREE,
        {"containers": [{"name": "two", "$patch": "delete"}, *_running("new")]},
    ),
    "an absent one deleted": (
        _TWO,
        {"containers": [{"name": "nobody", "$patch": "delete"}, *_running("new")]},
    ),
    "all replaced": (_TWO, {"containers": [{"$patch": "replace"}, *_running("new", "main")]}),
    "all replaced, named last": (
        _TWO,
        {"containers": [*_running("new", "main"), {"$patch": "replace"}]},
    ),
    "a new order": (_THREE, _order("containers", "three", "main", "two")),
    "a new order of some": (_THREE, _order("containers", "three", "main")),
    "a sidecar behind, by apply": (
        {},
        {**_order("containers", "main", "new"), "containers": _running("new")},
    ),
    "a sidecar in front, by apply": (
        {},
        {**_order("containers", "new", "main"), "containers": _running("new")},
    ),
    "a sidecar between, by apply": (
        _TWO,
        {**_order("containers", "main", "new", "two"), "containers": _running("new")},
    ),
    "a sidecar beside another client's, by apply": (
        _TWO,
        {**_order("containers", "main", "new"), "containers": _running("new")},
    ),
    "one goes and one comes, by apply": (
        _THREE,
        {
            **_order("containers", "three", "new"),
            "containers": [*_running("new"), {"name": "two", "$patch": "delete"}],
        },
    ),
    "an order that is not the patch's": (
        _TWO,
        {**_order("containers", "new"), "containers": _running("new", "newer")},
    ),
    "an order of another key": (_TWO, {"$setElementOrder/containers": [{"image": "i:1"}]}),
    "an order that is no list": (_TWO, {"$setElementOrder/containers": "main"}),
    "first init containers": ({}, {"initContainers": _running("i", "j")}),
    "first init containers in their order": (
        {},
        {**_order("initContainers", "j", "i"), "initContainers": _running("j", "i")},
    ),
    "one init container more": (
        {"initContainers": _running("i", "j")},
        {"initContainers": _running("k")},
    ),
    "one variable more": (_main(image="i:1", env=_ENV), _main(env=[{"name": "C", "value": "1"}])),
    "one variable more and one changed": (
        _main(image="i:1", env=_ENV),
        _main(env=[{"name": "B", "value": "2"}, {"name": "C", "value": "1"}]),
    ),
    "a variable behind, by apply": (
        _main(image="i:1", env=_ENV),
        {
            **_order("containers", "main"),
            **_main(env=[{"name": "C", "value": "1"}], **_order("env", "A", "C", "B")),
        },
    ),
    "one port more": (_main(image="i:1", ports=_PORTS), _main(ports=[{"containerPort": 82}])),
    "the same port once more": (
        _main(image="i:1", ports=_PORTS),
        _main(ports=[{"containerPort": 81, "protocol": "UDP"}]),
    ),
    "one volume more": ({"volumes": _VOLUMES}, {"volumes": [{"name": "c", "emptyDir": {}}]}),
    "another kind of volume": (
        {"volumes": _VOLUMES},
        {
            "volumes": [
                {
                    "name": "b",
                    "$retainKeys": ["name", "persistentVolumeClaim"],
                    "persistentVolumeClaim": {"claimName": "c"},
                }
            ]
        },
    ),
    "one mount more": (
        {"volumes": _VOLUMES, **_main(image="i:1", volumeMounts=_MOUNTS)},
        _main(volumeMounts=[{"name": "a", "mountPath": "/c"}]),
    ),
    "one toleration more": (
        {"tolerations": _TOLERATIONS},
        {"tolerations": [{"key": "c", "operator": "Exists"}]},
    ),
    "one argument more": (_main(image="i:1", args=["a", "b"]), _main(args=["c"])),
    "one pull secret more": (
        {"imagePullSecrets": _named("a", "b")},
        {"imagePullSecrets": _named("c")},
    ),
    "one alias more": (
        {
            "hostAliases": [
                {"ip": "1.1.1.1", "hostnames": ["a"]},
                {"ip": "2.2.2.2", "hostnames": ["b"]},
            ]
        },
        {"hostAliases": [{"ip": "3.3.3.3", "hostnames": ["c"]}]},
    ),
}
_APPLIED: dict[str, tuple[list[str], list[str]]] = {
    "one more behind": (["main"], ["main", "new"]),
    "one more in front": (["main"], ["new", "main"]),
    "one more between": (["main", "two"], ["main", "new", "two"]),
    "in another order": (["main", "two", "three"], ["three", "main", "two"]),
}


@pytest.mark.parametrize(
    ("held", "patch"), _CASES.values(), ids=[name.replace(" ", "-") for name in _CASES]
)
def test_a_merged_list_stands_as_on_the_real_server(
    worlds: list[tuple[ApiClient, str]], held: Object, patch: Object
) -> None:
    simulated, real = (_patched(api, space, held, patch) for api, space in worlds)
    assert simulated == real


@pytest.mark.parametrize(
    ("held", "wish"), _APPLIED.values(), ids=[name.replace(" ", "-") for name in _APPLIED]
)
def test_an_applied_list_stands_as_on_the_real_server(
    worlds: list[tuple[ApiClient, str]], held: list[str], wish: list[str]
) -> None:
    """The applier owns the whole list."""
    reported = [_applied(api, space, held, wish) for api, space in worlds]
    assert reported[0] == reported[1]


def test_finalizers_that_are_added_come_first_or_last_as_on_the_real_server(
    worlds: list[tuple[ApiClient, str]],
) -> None:
    reported = []
    for api, space in worlds:
        collection = f"/api/v1/namespaces/{space}/configmaps"
        api.post(collection, {"metadata": {"name": "a", "finalizers": ["x.io/a", "x.io/b"]}})
        answer = api.patch(
            f"{collection}/a", {"metadata": {"finalizers": ["x.io/c", "x.io/b"]}}, STRATEGIC
        )
        reported.append(answer.body["metadata"]["finalizers"])
        api.patch(f"{collection}/a", {"metadata": {"finalizers": None}}, STRATEGIC)
        api.delete(f"{collection}/a")
    assert reported[0] == reported[1]


def _with_pods(name: str, spec: Object) -> Object:
    body = deployment(name)
    body["spec"]["template"]["spec"] |= spec
    return body


def _patched(api: ApiClient, space: str, held: Object, patch: Object) -> Any:
    collection = f"/apis/apps/v1/namespaces/{space}/deployments"
    made = api.post(collection, _with_pods("web", held))
    assert made.status == 201, made.message
    try:
        answer = api.patch(f"{collection}/web", {"spec": {"template": {"spec": patch}}}, STRATEGIC)
        return (
            answer.body["spec"]["template"]["spec"]
            if answer.status == 200
            else (answer.status, answer.reason, answer.message)
        )
    finally:
        api.delete(f"{collection}/web")


def _applied(api: ApiClient, space: str, held: list[str], wish: list[str]) -> list[str]:
    path = f"/apis/apps/v1/namespaces/{space}/deployments/web"
    try:
        for names in (held, wish):
            answer = api.patch(
                path,
                _with_pods("web", {"containers": _running(*names)}),
                APPLY,
                fieldManager="me",
                force="true",
            )
            assert answer.status in (200, 201), answer.message
        return [
            container["name"] for container in answer.body["spec"]["template"]["spec"]["containers"]
        ]
    finally:
        api.delete(path)
