"""Cases of patches that do not apply, options that do not exist, selectors that do not parse, and
verbs that a path does not have.
"""

from __future__ import annotations

import json

from tests.contracts.api_client import APPLY, JSON_PATCH, MERGE, STRATEGIC
from tests.contracts.bad_input import (
    A_DEPLOYMENT,
    A_MAP,
    A_POD,
    DEPLOYMENTS,
    MAPS,
    PODS,
    Bad,
    named,
)
from tests.contracts.objects import config_map, pod

_MERGE = {
    "null": None,
    "a list": [],
    "a text": "x",
    "nothing": b"",
    "half an object": b"{",
    "another name": {"metadata": {"name": "b"}},
    "another namespace": {"metadata": {"namespace": "b"}},
    "~another kind": {"kind": "Secret"},
    "another uid": {"metadata": {"uid": "b"}},
    "no metadata": {"metadata": None},
    "~data that is a text": {"data": "x"},
    "~data that is a number": {"data": {"a": 1}},
    "a stale version": {"metadata": {"resourceVersion": "1"}, "data": {"b": "c"}},
    "a bad label": {"metadata": {"labels": {"a b": "c"}}},
}
_STRATEGIC = {
    "~a text for an object": {"spec": "x"},
    "~an object for a list": {"spec": {"containers": {"a": 1}}},
    "an item without its key": {"spec": {"containers": [{"image": "x"}]}},
    "~an item that is a text": {"spec": {"containers": ["x"]}},
    "an unknown directive": {"spec": {"$patch": "nope"}},
    "an absent field is deleted": {"metadata": {"labels": {"nope": None}}},
    "a list": [],
    "null": b"null",
    "~a text for a number": {"spec": {"priority": "x"}},
    "a container more": {"spec": {"containers": [{"name": "two", "image": "x"}]}},
    "a container less": {"spec": {"containers": [{"name": "main", "$patch": "delete"}]}},
    "an empty image": {"spec": {"containers": [{"name": "main", "image": ""}]}},
    "~another node": {"spec": {"nodeName": "n9"}},
    "~another grace": {"spec": {"terminationGracePeriodSeconds": 5}},
    "a new gate": {"spec": {"schedulingGates": [{"name": "x"}]}},
}


def _operation(op: str, path: str, **more: object) -> list[dict[str, object]]:
    return [{"op": op, "path": path, **more}]


_OPERATIONS = {
    "no list": {"op": "add"},
    "no operation": [1],
    "no path": [{"op": "add", "value": 1}],
    "an unknown operation": _operation("nope", "/data/a"),
    "add without a value": _operation("add", "/data/a"),
    "test that fails": _operation("test", "/data/a", value="9"),
    "test of an absent field": _operation("test", "/data/zz", value="9"),
    "test that an absent field is null": _operation("test", "/data/zz", value=None),
    "remove an absent field": _operation("remove", "/data/zz"),
    "replace an absent field": _operation("replace", "/data/zz", value="1"),
    "add below an absent field": _operation("add", "/zz/a", value="1"),
    "move an absent field": [{"op": "move", "from": "/data/zz", "path": "/data/b"}],
    "copy an absent field": [{"op": "copy", "from": "/data/zz", "path": "/data/b"}],
    "copies that double an object": [
        {"op": "copy", "from": "/data", "path": f"/data/{key}"} for key in "bc" * 20
    ],
    "an absent index": _operation("add", "/metadata/finalizers/9", value="1"),
    "a path without a slash": _operation("add", "data/a", value="1"),
    "the whole object": _operation("replace", "", value={}),
    "null": b"null",
    "nothing to do": [],
    "~a number for a text": _operation("add", "/data/b", value=1),
    "remove the metadata": _operation("remove", "/metadata"),
    "remove the name": _operation("remove", "/metadata/name"),
    "half a list": b"[{",
}
_APPLY = {
    "no kind": {"metadata": {"name": "a"}},
    "no name": {"apiVersion": "v1", "kind": "ConfigMap"},
    "another name": config_map("b"),
    "another kind": {**config_map(), "kind": "Secret"},
    "managed fields": config_map(managedFields=[{"manager": "y"}]),
    "an unknown field": {**config_map(), "zip": 1},
    "~broken YAML": b"a: {",
    "a list": b"- a",
    "a version of an absent object": config_map(resourceVersion="1"),
}
_WRITE_OPTIONS = {
    "unknown dryRun": {"dryRun": "Some"},
    "dryRun twice": {"dryRun": ["All", "All"]},
    "dryRun empty": {"dryRun": ""},
    "unknown validation": {"fieldValidation": "Nope"},
    "a manager's name that is too long": {"fieldManager": "x" * 129},
    "a manager's name that cannot be printed": {"fieldManager": "x\n"},
}
_LIST_OPTIONS = (
    *({"limit": text} for text in ("abc", "-1", "99999999999999999999")),
    {"timeoutSeconds": "x"},
    *({"resourceVersion": text} for text in ("abc", "-1")),
    {"resourceVersionMatch": "Exact"},
    {"resourceVersionMatch": "Nope", "resourceVersion": "1"},
    {"watch": "true", "resourceVersion": "abc"},
    {"watch": "true", "timeoutSeconds": "x"},
    {"watch": "true", "sendInitialEvents": "true"},
    {"sendInitialEvents": "true"},
    {"allowWatchBookmarks": "nope"},
    {"pretty": "nope"},
    {"nonsense": "1"},
)
_LABEL_SELECTORS = (
    *(
        "a in b",
        "a=(b",
        "=x",
        "a=b c",
        "a b",
        "a=,",
        "a in ()",
        "a in (,)",
        "!",
        "!a=b",
        "a>b",
        "A B=c",
        "a notin",
        "a in (b",
    ),
    *(
        ",",
        ",,",
        "a,,b",
        "a!b",
        "a===b",
        "a=b&c",
        "a=b_",
        "a/b/c=d",
        "a=" + "x" * 64,
        "x" * 64 + "=a",
    ),
    ",".join(f"a{number}=b" for number in range(5000)),
    f"a in ({','.join(f'v{number}' for number in range(5000))})",
)
_FIELD_SELECTORS = (
    "a",
    "a=b",
    "metadata.name",
    "=a",
    "metadata.name=a,",
    "metadata.name in (a)",
    "metadata.name=a=b",
    "spec.color=x",
)
_VERBS = (
    *(("POST", f"{MAPS}/a"), ("PUT", MAPS), ("PATCH", MAPS), ("HEAD", MAPS), ("OPTIONS", MAPS)),
    *(
        ("DELETE", "/api/v1/configmaps"),
        ("POST", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
    ),
    *(
        ("GET", f"{PODS}/a/eviction"),
        ("GET", f"{PODS}/a/binding"),
        ("DELETE", f"{PODS}/a/status"),
        ("POST", f"{PODS}/a/status"),
    ),
    *(
        ("PUT", f"{PODS}/a/log"),
        ("DELETE", f"{PODS}/a/log"),
        ("POST", "/version"),
        ("DELETE", "/api"),
        ("PUT", "/healthz"),
    ),
    *(
        ("GET", path)
        for path in (
            "/api/v2/pods",
            "/apis/x/v1/y",
            "/nope",
            "/apis/apps/v9",
            "/apis/nope",
            "/api/v1/pods/a",
            "//api/v1/pods",
        )
    ),
    *(
        ("GET", path)
        for path in (
            "/api/v1/namespaces/{s}/nodes",
            "/api/v1/namespaces/{s}/nodes/a",
            f"{PODS}/a/b/c",
            f"{MAPS}/a/scale",
        )
    ),
    *(
        ("GET", path)
        for path in (
            f"{PODS}/%2e%2e",
            f"{PODS}/a%2Fb",
            "/api/v1/namespaces//pods",
            f"{PODS}/nobody/log",
            f"{PODS}/nobody/exec",
        )
    ),
    *(
        ("POST", f"{PODS}/nobody/exec?command=ls&stdout=true"),
        ("POST", f"{DEPLOYMENTS}/web/rollback"),
        ("GET", f"{DEPLOYMENTS}/web/scale"),
    ),
)
_DELETIONS = {
    "~another kind of options": {"kind": "Nope", "apiVersion": "v1"},
    "an unknown policy": {"propagationPolicy": "Nope"},
    "two policies": {"propagationPolicy": "Orphan", "orphanDependents": True},
    "a grace that is a text": {"gracePeriodSeconds": "x"},
    "unknown dryRun": {"dryRun": ["x"]},
}
_LOGS = (
    *({"tailLines": text} for text in ("-1", "x")),
    *({"sinceSeconds": text} for text in ("0", "-1")),
    {"container": "nobody"},
    {"sinceTime": "x"},
    {"sinceSeconds": "1", "sinceTime": "2026-01-01T00:00:00Z"},
    {"limitBytes": "0"},
    {"stream": "Nope"},
    {"previous": "true"},
)
_BINDINGS = {
    "no target": {"metadata": {"name": "a"}},
    "another name": {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n"}},
    "another kind of target": {"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": "n"}},
}
_EVICTIONS = {
    "another name": {"metadata": {"name": "b"}},
    "nothing": {},
    "~another kind": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}},
}
_SCALES = {"a negative number": {"spec": {"replicas": -1}}, "~a text": {"spec": {"replicas": "x"}}}
_REPLACEMENTS = {
    "a version that is no number": config_map(resourceVersion="abc"),
    "a stale version": config_map(resourceVersion="1"),
    "~another uid": config_map(uid="abc"),
    "no name": {},
    "another name": config_map("b"),
}


def _patch(media: str, there: tuple[str, dict[str, object]] | None, **query: str) -> object:
    path = f"{there[0] if there else MAPS}/a"
    return lambda name, body: Bad(
        f"{media.partition('/')[2].partition('+')[0]}: {name}",
        "PATCH",
        path,
        body if isinstance(body, bytes) else json.dumps(body).encode(),
        query,
        media,
        there=there,
    )


CASES = (
    *named(_patch(MERGE, A_MAP), _MERGE),  # type: ignore[arg-type]
    *named(_patch(STRATEGIC, A_POD), _STRATEGIC),  # type: ignore[arg-type]
    *named(_patch(JSON_PATCH, A_MAP), _OPERATIONS),  # type: ignore[arg-type]
    *named(_patch(APPLY, None, fieldManager="x"), _APPLY),  # type: ignore[arg-type]
    Bad("apply: no manager", "PATCH", f"{MAPS}/a", config_map(), media=APPLY),
    Bad(
        "apply: an unknown field further down",
        "PATCH",
        f"{PODS}/a",
        pod(spec={"zip": 1}),
        {"fieldManager": "x"},
        APPLY,
    ),
    Bad("force for a merge patch", "PATCH", f"{MAPS}/a", {}, {"force": "true"}, MERGE, there=A_MAP),
    *named(
        lambda name, query: Bad(f"options: {name}", "POST", MAPS, config_map(), query),
        _WRITE_OPTIONS,
    ),
    *(Bad(f"list: {json.dumps(query)}", "GET", MAPS, query=query) for query in _LIST_OPTIONS),
    Bad(
        "list: a version from the future",
        "GET",
        MAPS,
        query={"resourceVersion": "999999999999"},
        is_worded=False,
    ),
    Bad("list: a made-up token", "GET", MAPS, query={"continue": "!!!"}, is_worded=False),
    *(
        Bad((f"labels: {text}")[:60], "GET", MAPS, query={"labelSelector": text})
        for text in _LABEL_SELECTORS
    ),
    *(
        Bad(f"fields: {text}", "GET", MAPS, query={"fieldSelector": text})
        for text in _FIELD_SELECTORS
    ),
    *(
        Bad(f"fields of pods: {text}", "GET", PODS, query={"fieldSelector": text})
        for text in ("spec.color=x", "spec.nodeName", "status.phase=Nope")
    ),
    *(
        Bad(
            f"verb: {method} {path}",
            method,
            path,
            {} if method in ("POST", "PUT", "PATCH") else None,
        )
        for method, path in _VERBS
    ),
    *(
        Bad(f"accept: {kind}", "GET", MAPS, accept=kind, is_worded=False)
        for kind in ("text/html", "application/xml", "application/json;as=Nope;v=v1;g=meta.k8s.io")
    ),
    *named(
        lambda name, body: Bad(f"delete: {name}", "DELETE", f"{MAPS}/a", body, there=A_MAP),
        _DELETIONS,
    ),
    Bad("delete: half an object", "DELETE", f"{MAPS}/a", b"{", there=A_MAP, is_worded=False),
    Bad("delete: absent", "DELETE", f"{MAPS}/absent"),
    Bad(
        "delete: a grace that is a text, in the query",
        "DELETE",
        f"{MAPS}/a",
        query={"gracePeriodSeconds": "x"},
        there=A_MAP,
    ),
    Bad(
        "delete: an unknown policy, in the query",
        "DELETE",
        f"{MAPS}/a",
        query={"propagationPolicy": "Nope"},
        there=A_MAP,
    ),
    Bad("delete: a broken selection", "DELETE", MAPS, query={"labelSelector": "a in b"}),
    *(
        Bad(f"logs: {json.dumps(query)}", "GET", f"{PODS}/a/log", query=query, there=A_POD)
        for query in _LOGS
    ),
    *named(
        lambda name, body: Bad(f"binding: {name}", "POST", f"{PODS}/a/binding", body, there=A_POD),
        _BINDINGS,
    ),
    *named(
        lambda name, body: Bad(
            f"eviction: {name}", "POST", f"{PODS}/a/eviction", body, there=A_POD
        ),
        _EVICTIONS,
    ),
    *named(
        lambda name, body: Bad(
            f"scale: {name}",
            "PATCH",
            f"{DEPLOYMENTS}/web/scale",
            body,
            media=MERGE,
            there=A_DEPLOYMENT,
        ),
        _SCALES,
    ),
    Bad("scale: nothing", "PUT", f"{DEPLOYMENTS}/web/scale", {}, there=A_DEPLOYMENT),
    Bad(
        "scale: another name",
        "PUT",
        f"{DEPLOYMENTS}/web/scale",
        {"metadata": {"name": "x"}, "spec": {"replicas": 1}},
        there=A_DEPLOYMENT,
    ),
    *named(
        lambda name, body: Bad(f"replace: {name}", "PUT", f"{MAPS}/a", body, there=A_MAP),
        _REPLACEMENTS,
    ),
    Bad("replace: absent", "PUT", f"{MAPS}/absent", config_map("absent")),
    Bad("create: nowhere", "POST", "/api/v1/namespaces/nowhere/configmaps", config_map()),
    Bad("create: with a version", "POST", MAPS, config_map(resourceVersion="7")),
    Bad("create: in another namespace", "POST", MAPS, config_map(namespace="other")),
)
