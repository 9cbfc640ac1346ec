"""Cases of bodies that cannot be read, are of another kind, or are too large."""

from __future__ import annotations

import json

from tests.contracts.api_client import JSON_PATCH, MERGE, STRATEGIC
from tests.contracts.bad_input import A_MAP, A_POD, DEPLOYMENTS, MAPS, PODS, Bad, named
from tests.contracts.objects import config_map, pod

YAML = "application/yaml"
_MIB = 1024 * 1024
_STRICT = {"fieldValidation": "Strict"}

_JSON = {
    "~nothing": b"",
    "~an open brace": b"{",
    "~an object that ends early": b'{"metadata": ',
    "~something after the object": b'{"metadata":{"name":"a"}} x',
    "~two objects": b'{"metadata":{"name":"a"}}{}',
    "~single quotes": b"{'a':1}",
    "~NaN": b'{"metadata":{"name":"a"},"data":NaN}',
    "~an unknown escape": b'{"metadata":{"name":"\\x"}}',
    "bytes that are no UTF-8 in a label": b'{"metadata":{"name":"a","labels":{"a":"\xff\xfe"}}}',
    "bytes that are no UTF-8 in data": b'{"metadata":{"name":"a"},"data":{"a":"\xff\xfe"}}',
    "~bytes that are no UTF-8 at all": b"\xff\xfe",
    "null": b"null",
    "~a list": b"[]",
    "~a text": b'"x"',
    "~a number": b"7",
    "~true": b"true",
    "~a tab within a text": b'{"metadata":{"name":"a"},"data":{"a":"\t"}}',
    "~a zero byte in a name": b'{"metadata":{"name":"a\\u0000"}}',
    "~a byte order mark": b'\xef\xbb\xbf{"metadata":{"name":"a"}}',
    "~twenty thousand levels": b'{"metadata":{"name":"a"},"x":'
    + b'{"a":' * 20_000
    + b"1"
    + b"}" * 20_001,
    "~an apiVersion that is a number": b'{"apiVersion": 1, "metadata": {"name": "a"}}',
}
_STRICT_JSON = {
    "a field in the wrong case, strictly": b'{"metadata":{"name":"a"},"Data":{}}',
}
_YAML = {
    "~a tab as indentation": b"metadata:\n\tname: a\n",
    "~an open map": b"metadata: {name: a\n",
    "~a list": b"- a\n",
    "~a plain text": b"hello\n",
    "~nothing": b"",
    "~an unknown alias": b"metadata: *x\n",
    "an anchor": b"metadata: &x {name: a}\ndata: {a: b}\n",
    "a key that is a number": b"metadata: {name: a}\ndata: {1: b}\n",
    "a value that is true": b"metadata: {name: a}\ndata: {a: true}\n",
    "a value that is a date": b"metadata: {name: a}\ndata: {a: 2026-01-05}\n",
}
_KINDS = {
    "~another kind": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
    "~an unknown kind": {"apiVersion": "v1", "kind": "Nope", "metadata": {"name": "a"}},
    "~an unknown version": {"apiVersion": "v9", "kind": "ConfigMap", "metadata": {"name": "a"}},
    "~an unknown group": {"apiVersion": "x.io/v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
    "~a kind without a version": {"kind": "Secret", "metadata": {"name": "a"}},
    "~a version without a kind": {"apiVersion": "apps/v1", "metadata": {"name": "a"}},
    "~a list": {"apiVersion": "v1", "kind": "List", "items": []},
}
_MEDIA = (
    "text/plain",
    "application/xml",
    "application/x-www-form-urlencoded",
    "application/json; charset=utf-8",
    "application/cbor",
    "nonsense",
    MERGE,
)
_SIZES = {
    "data of more than 1 MiB": config_map(data={"a": "x" * (_MIB + 1)}),
    "annotations of 2 MiB": config_map(annotations={"a": "x" * (2 * _MIB)}),
    "a body of 3 MiB": config_map(data={"a": "x" * (3 * _MIB)}),
    "a body of 4 MiB": config_map(data={"a": "x" * (4 * _MIB)}),
}

CASES = (
    *named(lambda name, body: Bad(f"JSON: {name}", "POST", MAPS, body), _JSON),
    *named(lambda name, body: Bad(f"JSON: {name}", "POST", MAPS, body, _STRICT), _STRICT_JSON),
    *named(lambda name, body: Bad(f"YAML: {name}", "POST", MAPS, body, media=YAML), _YAML),
    *named(lambda name, body: Bad(f"kind: {name}", "POST", MAPS, body), _KINDS),
    Bad("kind: a pod for the deployments", "POST", DEPLOYMENTS, pod(), is_worded=False),
    *(
        Bad(f"media type: {media}", "POST", MAPS, json.dumps(config_map()).encode(), media=media)
        for media in _MEDIA
    ),
    *(
        Bad(
            f"media type of a patch: {media}",
            "PATCH",
            f"{MAPS}/a",
            b"{}",
            media=media,
            there=A_MAP,
        )
        for media in ("text/plain", "application/json", "")
    ),
    *named(lambda name, body: Bad(f"size: {name}", "POST", MAPS, body), _SIZES),
    Bad(
        "size: a pod with annotations of 2 MiB",
        "POST",
        PODS,
        pod(annotations={"a": "x" * (2 * _MIB)}),
    ),
    Bad(
        "size: a patch of 2 MiB",
        "PATCH",
        f"{MAPS}/a",
        {"data": {"a": "x" * (2 * _MIB)}},
        media=MERGE,
        there=A_MAP,
    ),
    Bad(
        "size: a patch of 4 MiB",
        "PATCH",
        f"{MAPS}/a",
        {"data": {"a": "x" * (4 * _MIB)}},
        media=MERGE,
        there=A_MAP,
    ),
    Bad(
        "size: ten thousand and one operations",
        "PATCH",
        f"{MAPS}/a",
        [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001,
        media=JSON_PATCH,
        there=A_MAP,
    ),
    Bad(
        "unknown field, strictly, in a merge patch",
        "PATCH",
        f"{PODS}/a",
        {"spec": {"zip": 1}},
        _STRICT,
        MERGE,
        there=A_POD,
        is_worded=False,
    ),
    Bad(
        "unknown field, strictly, in a strategic patch",
        "PATCH",
        f"{PODS}/a",
        {"spec": {"zip": 1}},
        _STRICT,
        STRATEGIC,
        there=A_POD,
    ),
    Bad(
        "unknown field, ignored",
        "POST",
        MAPS,
        {"metadata": {"name": "a"}, "zip": {}},
        {"fieldValidation": "Ignore"},
    ),
)
