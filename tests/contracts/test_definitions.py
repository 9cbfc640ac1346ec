"""Contract: CustomResourceDefinitions and the objects of the kinds that they define. The same
assertions over both worlds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.contracts.api_client import APPLY, JSON_PATCH, MERGE, ApiClient, until
from tests.contracts.objects import Object

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SPEC: Object = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "share": {"type": "number", "multipleOf": 0.5},
        "load": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
        "port": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "keys": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
            },
        },
        "labels": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "maxProperties": 2,
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "when": {"type": "string", "format": "date-time"},
        "note": {"type": "string", "nullable": True},
        "deep": {"type": "object", "properties": {"level": {"type": "integer", "default": 3}}},
        "choice": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    },
}
STATUS: Object = {
    "type": "object",
    "properties": {
        "phase": {"type": "string"},
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
    },
}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
    {
        "name": "Last",
        "type": "string",
        "jsonPath": ".spec.tags[-1:]",
        "priority": 1,
        "description": "the newest tag",
    },
    {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
    {"name": "Value", "type": "string", "jsonPath": '.spec.keys[?(@.name=="b")].value'},
    {"name": "Share", "type": "number", "jsonPath": ".spec.share", "format": "float"},
    {"name": "Port", "type": "string", "jsonPath": ".spec.port"},
    {"name": "Wrong", "type": "integer", "jsonPath": ".spec.color"},
    {"name": "When", "type": "date", "jsonPath": ".spec.when"},
    {"name": "Dotted", "type": "string", "jsonPath": ".metadata.labels.x\\.io/y"},
    {"name": "Free", "type": "string", "jsonPath": ".spec.free"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
_numbers = itertools.count(1)


def version(name: str = "v1", *, storage: bool = True, served: bool = True, **more: Any) -> Object:
    schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    subresources = {"status": {}, "scale": SCALE}
    base = {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
    }
    return {**base, "subresources": subresources, "additionalPrinterColumns": COLUMNS, **more}


SCALE = {
    "specReplicasPath": ".spec.size",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def definition(
    group: str,
    *versions: Object,
    scope: str = "Namespaced",
    plural: str = "widgets",
    kind: str = "Widget",
    **names: Any,
) -> Object:
    spec = {
        "group": group,
        "scope": scope,
        "names": {"plural": plural, "kind": kind, **names},
        "versions": list(versions) or [version()],
    }
    metadata = {"name": f"{plural}.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.fixture
def group(api: ApiClient) -> Iterator[str]:
    """A group of the test's own, whose definitions go with it."""
    name = f"g{next(_numbers)}.contract.example.com"
    yield name
    for found in api.get(DEFINITIONS).body["items"]:
        if found["spec"]["group"] == name:
            api.delete(f"{DEFINITIONS}/{found['metadata']['name']}")


def install(api: ApiClient, body: Object) -> Object:
    """Create a definition and wait until its kind is served (a real server needs a moment)."""
    made = api.post(DEFINITIONS, body)
    assert made.status == 201, made.message
    name, spec = body["metadata"]["name"], body["spec"]
    served = [entry["name"] for entry in spec["versions"] if entry["served"]]
    until(
        f"{name} is served",
        lambda: all(
            api.get(f"/apis/{spec['group']}/{v}/{spec['names']['plural']}").status == 200
            for v in served
        ),
    )
    return dict(made.body)


def widgets(
    group: str, space: str = "", name: str = "", subresource: str = "", version: str = "v1"
) -> str:
    place = f"namespaces/{space}/" if space else ""
    return "/".join(
        part for part in (f"/apis/{group}/{version}/{place}widgets", name, subresource) if part
    )


def widget(
    group: str, spec: Any = None, name: str = "a", version: str = "v1", **more: Any
) -> Object:
    given = {"size": 1} if spec is None else spec
    return {
        "apiVersion": f"{group}/{version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": given,
        **more,
    }


# --- definitions ----------------------------------------------------------------------------------


def test_a_definition_is_accepted_and_established(api: ApiClient, group: str) -> None:
    made = install(api, definition(group, shortNames=["wd"], categories=["all"]))
    assert made["status"]["acceptedNames"] == {"kind": "", "plural": ""} and made["status"][
        "storedVersions"
    ] == ["v1"]
    assert made["spec"]["names"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    assert (
        made["spec"]["conversion"] == {"strategy": "None"} and made["metadata"]["generation"] == 1
    )
    now = api.get(f"{DEFINITIONS}/widgets.{group}").body
    assert now["status"]["acceptedNames"] == now["spec"]["names"]
    message = {
        c["type"]: (c["status"], c["reason"], c["message"]) for c in now["status"]["conditions"]
    }
    assert message == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }


def test_names_that_another_definition_has(api: ApiClient, group: str) -> None:
    install(api, definition(group, shortNames=["wd"]))
    body = definition(group, plural="gadgets", kind="Widget", shortNames=["wd"])
    assert api.post(DEFINITIONS, body).status == 201

    def conditions() -> dict[str, Any]:
        found = api.get(f"{DEFINITIONS}/gadgets.{group}").body["status"].get("conditions") or []
        return {c["type"]: (c["status"], c["reason"], c["message"]) for c in found}

    until("the conflict is reported", lambda: "NamesAccepted" in conditions())
    assert conditions() == {
        "NamesAccepted": ("False", "ListKindConflict", '"WidgetList" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    assert api.get(f"/apis/{group}/v1/gadgets").status == 404
    api.delete(f"{DEFINITIONS}/widgets.{group}")
    until("the names are free", lambda: conditions().get("Established", ("",))[0] == "True")


def _set(body: Object, path: str, value: Any) -> Object:
    place: Any = body
    *steps, last = (int(step) if step.isdecimal() else step for step in path.split("/"))
    for step in steps:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return body


def _refused(path: str, value: Any) -> Callable[[str], Object]:
    return lambda group: _set(
        definition(group, {**version(), "schema": {"openAPIV3Schema": {"type": "object"}}}),
        path,
        value,
    )


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (
            _refused("metadata/name", "x"),
            ('metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group'),
        ),
        (
            _refused("spec/scope", "Galaxy"),
            ('spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
        ),
        (_refused("spec/scope", None), "spec.scope: Required value"),
        (
            _refused("spec/versions/0/storage", False),
            "must have exactly one version marked as storage version",
        ),
        (
            _refused("spec/versions/0/schema", None),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
        (
            _refused("spec/versions/0/schema/openAPIV3Schema/properties", {"a": {"type": "strin"}}),
            'spec.validation.openAPIV3Schema.properties[a].type: Unsupported value: "strin": '
            'supported values: "array", "boolean", '
            '"integer", "number", "object", "string"',
        ),
        (
            _refused(
                "spec/versions/0/schema/openAPIV3Schema/properties", {"a": {"description": "x"}}
            ),
            (
                "spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be "
                "empty for specified object fields"
            ),
        ),
        (
            _refused(
                "spec/versions/0/schema/openAPIV3Schema/properties",
                {"a": {"type": "array", "items": {}}},
            ),
            (
                "spec.validation.openAPIV3Schema.properties[a].items.type: Required value: must "
                "not be empty for specified array items"
            ),
        ),
        (
            _refused("spec/versions/0/schema/openAPIV3Schema", {"properties": {}}),
            "spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root",
        ),
        (_refused("spec/names/plural", None), "spec.names.plural: Required value"),
        (
            _refused("spec/names/kind", "Wid get"),
            (
                'spec.names.kind: Invalid value: "Wid get": may have '
                "mixed case, but should otherwise"
            ),
        ),
        (
            _refused("spec/names/shortNames", ["W"]),
            ('spec.names.shortNames[0]: Invalid value: "W": a DNS-1035 label must consist of'),
        ),
        (
            _refused(
                "spec/versions/0/additionalPrinterColumns",
                [{"name": "A", "type": "text", "jsonPath": ".a"}],
            ),
            (
                'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of '
                "boolean,date,integer,number,string"
            ),
        ),
    ],
)
def test_refused_definitions(
    api: ApiClient, group: str, broken: Callable[[str], Object], why: str
) -> None:
    answer = api.post(DEFINITIONS, broken(group))
    assert (answer.status, answer.reason) == (422, "Invalid"), answer.message
    assert why in answer.message


def test_protected_groups_want_an_approval(api: ApiClient) -> None:
    body = definition("contract.k8s.io")
    message = (
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups "
        "must have approval annotation "
        '"api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
    )
    answer = api.post(DEFINITIONS, body, dryRun="All")
    assert answer.status == 422 and message in answer.message
    assert (
        api.post(
            DEFINITIONS,
            {
                **body,
                "metadata": {
                    **body["metadata"],
                    "annotations": {"api-approved.kubernetes.io": "unapproved"},
                },
            },
            dryRun="All",
        ).status
        == 201
    )


def test_what_may_not_change(api: ApiClient, group: str) -> None:
    install(api, definition(group))
    target = f"{DEFINITIONS}/widgets.{group}"
    answer = api.patch(target, {"spec": {"scope": "Cluster"}}, MERGE)
    assert (
        answer.status == 422
        and ('spec.scope: Invalid value: "Cluster": field is immutable') in answer.message
    )
    answer = api.patch(target, {"spec": {"versions": [version("v2")]}}, MERGE)
    assert answer.status == 422
    assert (
        'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was '
        "previously a storage version, and must remain "
        "in spec.versions until a storage migration ensures no data remains persisted in v1 "
        "and removes v1 from status.storedVersions"
    ) in answer.message


_SCHEMA = "spec/versions/0/schema/openAPIV3Schema"
_COLUMN = {"name": "a", "type": "string"}
_CHANGES: list[tuple[str, Any]] = [
    ("spec", "x"),
    ("spec/names", "x"),
    ("spec/versions", [1]),
    ("spec/versions", "x"),
    ("spec/versions/0/served", "yes"),
    ("spec/versions/0/additionalPrinterColumns", {}),
    ("spec/versions/0/additionalPrinterColumns", [{**_COLUMN, "jsonPath": "a"}]),
    ("spec/versions/0/additionalPrinterColumns", [{**_COLUMN, "jsonPath": ".a[?(@.x"}]),
    ("spec/versions/0/subresources", {"scale": {}}),
    (
        "spec/versions/0/subresources",
        {"scale": {"specReplicasPath": "x", "statusReplicasPath": ".status.a"}},
    ),
    ("spec/colour", 1),
    ("spec/group", ""),
    ("spec/scope", ""),
    ("spec/conversion", {"strategy": "Magic"}),
    ("spec/conversion", {"strategy": "Webhook"}),
    ("spec/preserveUnknownFields", True),
    ("metadata/name", "Bad Name"),
    (_SCHEMA, 5),
    (f"{_SCHEMA}/colour", 1),
    (f"{_SCHEMA}/required", ["a"]),
    (f"{_SCHEMA}/x-kubernetes-preserve-unknown-fields", True),
    (f"{_SCHEMA}/properties", "x"),
    (f"{_SCHEMA}/properties", {"a": 5}),
    (f"{_SCHEMA}/properties", {"a": {"type": 5}}),
    (
        f"{_SCHEMA}/properties",
        {"a": {"type": "array", "items": {"type": "object", "properties": "x"}}},
    ),
    (f"{_SCHEMA}/properties", {"a": {"type": "array", "items": {"type": "object", "colour": "x"}}}),
    (f"{_SCHEMA}/properties", {"a": {"type": "object", "additionalProperties": "x"}}),
    (f"{_SCHEMA}/properties", {"a": {"type": "integer", "default": "x"}}),
    (
        f"{_SCHEMA}/properties",
        {"metadata": {"type": "object", "properties": {"foo": {"type": "string"}}}},
    ),
]


@pytest.mark.parametrize(("path", "value"), _CHANGES, ids=lambda part: str(part)[:60])
def test_both_servers_agree_on_a_changed_definition(
    both: tuple[ApiClient, ApiClient], path: str, value: Any
) -> None:
    body = _refused(path, value)("same.contract.example.com")

    def printed(api: ApiClient) -> tuple[int, str]:
        answer = api.post(DEFINITIONS, body, dryRun="All", fieldValidation="Strict")
        return answer.status, answer.message if answer.status != 201 else ""

    simulated, real = both
    assert printed(simulated) == printed(real)


# --- objects --------------------------------------------------------------------------------------


def test_defaults_and_pruning(api: ApiClient, group: str, space: str) -> None:
    install(api, definition(group))
    spec = {
        "size": 2,
        "unknown": 1,
        "deep": {},
        "free": {"any": {"thing": 1}},
        "labels": {"x": "y"},
        "keys": [{"name": "a", "more": 1}],
    }
    made = api.post(
        widgets(group, space), widget(group, {**spec, "note": None, "name": None}, extra={"a": 1})
    )
    assert made.status == 201, made.message
    assert made.body["spec"] == {
        "size": 2,
        "color": "red",
        "deep": {"level": 3},
        "free": {"any": {"thing": 1}},
        "labels": {"x": "y"},
        "keys": [{"name": "a"}],
        "note": None,
    }
    assert "extra" not in made.body
    assert 'unknown field \\"spec.unknown\\"' in made.headers["warning"]  # the last of three
    strict = api.post(
        widgets(group, space),
        widget(group, {"size": 1, "unknown": 1}, "b"),
        fieldValidation="Strict",
    )
    assert (strict.status, strict.message) == (
        400,
        (
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown '
            'field "spec.unknown"'
        ),
    )


FAULTS: dict[str, tuple[Any, str]] = {
    "missing": ({}, "spec.size: Required value"),
    "type": (
        {"size": "1"},
        ('spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
    ),
    "null": ({"size": None}, "spec.size: Required value"),
    "small": (
        {"size": 0},
        "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
    ),
    "large": (
        {"size": 10},
        "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9",
    ),
    "enum": (
        {"size": 1, "color": "pink"},
        ('spec.color: Unsupported value: "pink": supported values: "red", "blue"'),
    ),
    "pattern": (
        {"size": 1, "name": "AB"},
        "spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'",
    ),
    "short": (
        {"size": 1, "name": "a"},
        ('spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long'),
    ),
    "long": ({"size": 1, "name": "abcdef"}, "spec.name: Too long: may not be more than 5 bytes"),
    "step": (
        {"size": 1, "share": 0.7},
        "spec.share: Invalid value: 0.7: spec.share in body should be a multiple of 0.5",
    ),
    "exclusive": (
        {"size": 1, "load": 0},
        "spec.load: Invalid value: 0: spec.load in body should be greater than 0",
    ),
    "int or string": (
        {"size": 1, "port": True},
        (
            'spec.port: Invalid value: "boolean": spec.port in body must be of type '
            'integer,string: "boolean"'
        ),
    ),
    "empty list": (
        {"size": 1, "tags": []},
        "spec.tags: Invalid value: 0: spec.tags in body should have at least 1 items",
    ),
    "long list": (
        {"size": 1, "tags": ["a", "b", "c"]},
        "spec.tags: Too many: 3: must have at most 2 items",
    ),
    "item": (
        {"size": 1, "tags": [1]},
        (
            'spec.tags[0]: Invalid value: "integer": spec.tags[0] in body must be of type string: '
            '"integer"'
        ),
    ),
    "map value": (
        {"size": 1, "labels": {"a": 1}},
        (
            'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type '
            'string: "integer"'
        ),
    ),
    "map size": (
        {"size": 1, "labels": {"a": "", "b": "", "c": ""}},
        "spec.labels: Too many: 3: must have at most 2 items",
    ),
    "twice": (
        {"size": 1, "keys": [{"name": "a"}, {"name": "a"}]},
        ('spec.keys[1]: Duplicate value: {"name":"a"}'),
    ),
    "time": (
        {"size": 1, "when": "now"},
        ('spec.when: Invalid value: "now": spec.when in body must be of type date-time: "now"'),
    ),
    "one of": (
        {"size": 1, "choice": {}},
        '[<nil>: Invalid value: "": "spec.choice" must validate one and only one schema '
        "(oneOf). Found none valid, "
        "spec.choice.a: Required value]",
    ),
    "spec": (
        "text",
        ('spec: Invalid value: "string": spec in body must be of type object: "string"'),
    ),
}


def test_refused_objects(api: ApiClient, group: str, space: str) -> None:
    """One definition serves all cases: a real server takes seconds before the first object of a new
    kind.
    """
    install(api, definition(group, {**version(), "subresources": {}}))
    for case, (spec, why) in FAULTS.items():
        answer = api.post(widgets(group, space), widget(group, spec))
        assert (answer.status, answer.reason) == (422, "Invalid"), (case, answer.body)
        assert answer.message == f'Widget.{group} "a" is invalid: {why}', case
    several = api.post(widgets(group, space), widget(group, {"size": 0, "color": "pink"}))
    assert len(several.body["details"]["causes"]) == 2


def test_a_change_is_checked_like_a_new_object(api: ApiClient, group: str, space: str) -> None:
    install(api, definition(group))
    api.post(widgets(group, space), widget(group))
    target = widgets(group, space, "a")
    assert api.patch(target, {"spec": {"size": 0}}, MERGE).status == 422
    assert api.patch(target, [{"op": "remove", "path": "/spec/size"}], JSON_PATCH).status == 422
    assert api.patch(f"{target}/status", {"status": {"phase": 7}}, MERGE).status == 422
    applied = api.patch(target, widget(group, {"size": 3}), APPLY, fieldManager="x", force="true")
    assert (applied.status, applied.body["spec"]) == (200, {"size": 3, "color": "red"})


def test_status_scale_and_generations(api: ApiClient, group: str, space: str) -> None:
    install(api, definition(group))
    made = api.post(widgets(group, space), widget(group, status={"phase": "mine"}))
    assert "status" not in made.body and made.body["metadata"]["generation"] == 1
    target = widgets(group, space, "a")
    answer = api.patch(
        f"{target}/status",
        {"status": {"phase": "Up", "replicas": 4, "selector": "a=b"}, "spec": {"size": 5}},
        MERGE,
    ).body
    assert (
        answer["status"]["phase"],
        answer["spec"]["size"],
        answer["metadata"]["generation"],
    ) == (
        "Up",
        1,
        1,
    )
    scale = api.get(f"{target}/scale").body
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale",
        {"replicas": 1},
        {"replicas": 4, "selector": "a=b"},
    )
    scaled = api.patch(f"{target}/scale", {"spec": {"replicas": 7}}, MERGE)
    assert (scaled.status, scaled.body["spec"]) == (200, {"replicas": 7}), scaled.message
    now = api.get(target).body
    assert (now["spec"]["size"], now["metadata"]["generation"], now["status"]["phase"]) == (
        7,
        2,
        "Up",
    )


def test_without_subresources_the_status_is_a_field_like_any_other(
    api: ApiClient, group: str, space: str
) -> None:
    install(api, definition(group, {**version(), "subresources": {}}))
    made = api.post(widgets(group, space), widget(group, status={"phase": "mine"})).body
    assert made["status"] == {"phase": "mine"}
    changed = api.patch(widgets(group, space, "a"), {"status": {"phase": "yours"}}, MERGE).body
    assert (changed["status"]["phase"], changed["metadata"]["generation"]) == ("yours", 2)
    assert api.get(widgets(group, space, "a", "status")).status == 404


def test_versions_are_views_of_one_object(api: ApiClient, group: str, space: str) -> None:
    old = version("v1beta1", storage=False, deprecated=True)
    install(api, definition(group, version("v1"), old))
    assert (
        api.post(widgets(group, space, version="v1beta1"), widget(group, version="v1beta1")).status
        == 201
    )
    assert api.get(widgets(group, space, "a")).body["apiVersion"] == f"{group}/v1"
    seen = api.get(widgets(group, space, "a", version="v1beta1"))
    assert seen.body["apiVersion"] == f"{group}/v1beta1"
    assert f"{group}/v1beta1 Widget is deprecated" in seen.headers["warning"]
    listed = api.get(widgets(group, space, version="v1beta1")).body
    assert (listed["kind"], listed["apiVersion"], listed["items"][0]["apiVersion"]) == (
        "WidgetList",
        *[f"{group}/v1beta1"] * 2,
    )
    since = listed["metadata"]["resourceVersion"]
    with api.watch(widgets(group, space, version="v1beta1"), resourceVersion=since) as events:
        api.patch(widgets(group, space, "a"), {"spec": {"size": 4}}, MERGE)
        event = next(events)
    assert (event["type"], event["object"]["apiVersion"], event["object"]["spec"]["size"]) == (
        "MODIFIED",
        f"{group}/v1beta1",
        4,
    )


def test_a_changed_definition_takes_effect(api: ApiClient, group: str, space: str) -> None:
    install(api, definition(group))
    api.post(widgets(group, space), widget(group))
    wider = {
        "type": "object",
        "properties": {
            "spec": {
                **SPEC,
                "properties": {**SPEC["properties"], "late": {"type": "string", "default": "x"}},
            }
        },
    }
    schema = {"openAPIV3Schema": wider}

    def change(*versions: Object) -> Object:
        changed = api.patch(
            f"{DEFINITIONS}/widgets.{group}", {"spec": {"versions": versions}}, MERGE
        )
        assert changed.status == 200, changed.message
        return dict(changed.body)

    change({**version(), "schema": schema})
    until(
        "the new default is read",
        lambda: api.get(widgets(group, space, "a")).body["spec"].get("late") == "x",
    )
    newer = {**version("v2"), "schema": schema}
    assert change(version("v1", storage=False), newer)["status"]["storedVersions"] == ["v1", "v2"]
    until("v2 is served", lambda: api.get(widgets(group, space, "a", version="v2")).status == 200)
    change(version("v1", storage=False, served=False), newer)
    until("v1 is no longer served", lambda: api.get(widgets(group, space, "a")).status == 404)
    assert api.get(widgets(group, space, "a", version="v2")).status == 200


def test_cluster_wide_kinds(api: ApiClient, group: str) -> None:
    install(api, definition(group, scope="Cluster"))
    assert api.post(widgets(group), widget(group)).status == 201
    assert api.get(widgets(group, name="a")).body["metadata"].get("namespace") is None
    assert api.get(widgets(group, "default", "a")).status == 404


def test_a_definition_takes_its_objects_with_it(api: ApiClient, group: str, space: str) -> None:
    install(api, definition(group))
    held = widget(group)
    held["metadata"]["finalizers"] = ["contract.example.com/hold"]
    assert api.post(widgets(group, space), held).status == 201
    assert api.post(widgets(group, space), widget(group, name="b")).status == 201
    going = api.delete(f"{DEFINITIONS}/widgets.{group}")
    assert going.status == 200 and going.body["metadata"]["finalizers"] == [
        "customresourcecleanup.apiextensions.k8s.io"
    ]
    until("the free object is gone", lambda: api.get(widgets(group, space, "b")).status == 404)
    assert "deletionTimestamp" in api.get(widgets(group, space, "a")).body["metadata"]
    refused = api.post(widgets(group, space), widget(group, name="c"))
    assert (refused.status, refused.message) == (
        403,
        (
            f'widgets.{group} "c" is forbidden: create not allowed while custom resource '
            "definition is terminating"
        ),
    )
    answer = {
        c["type"]: (c["status"], c["reason"])
        for c in api.get(f"{DEFINITIONS}/widgets.{group}").body["status"]["conditions"]
    }
    assert answer["Terminating"] == ("True", "InstanceDeletionInProgress")
    api.patch(widgets(group, space, "a"), {"metadata": {"finalizers": None}}, MERGE)
    until("the definition is gone", lambda: api.get(f"{DEFINITIONS}/widgets.{group}").status == 404)
    assert api.get(widgets(group, space)).status == 404


def test_tables_and_discovery(both: tuple[ApiClient, ApiClient]) -> None:
    group = "table.contract.example.com"
    spec = {
        "size": 3,
        "tags": ["a", "b"],
        "keys": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}],
        "share": 1.5,
        "port": 8080,
        "when": "2020-01-01T00:00:00Z",
        "free": {"b": 1, "a": [True]},
    }

    def shown(api: ApiClient) -> Any:
        install(
            api,
            definition(
                group,
                version(),
                version("v1alpha1", storage=False, additionalPrinterColumns=[]),
                shortNames=["wd"],
                categories=["all"],
            ),
        )
        try:
            full = widget(group, spec)
            full["metadata"]["labels"] = {"x.io/y": "z"}
            for body in (full, widget(group, name="b")):
                assert api.post(widgets(group, "default"), body).status == 201
            tables = [
                api.table(widgets(group, "default", version=v)).body for v in ("v1", "v1alpha1")
            ]
            resources = api.get(f"/apis/{group}/v1").body["resources"]
            for resource in resources:
                resource.pop("storageVersionHash", None)
                resource["verbs"] = sorted(resource["verbs"])
            columns = [
                [{**column, "description": ""} for column in table["columnDefinitions"]]
                for table in tables
            ]
            return (
                columns,
                [[row["cells"][:-1] for row in table["rows"]] for table in tables],
                resources,
                api.get(f"/apis/{group}").body,
            )
        finally:
            api.delete(f"{DEFINITIONS}/widgets.{group}")

    simulated, real = both
    assert shown(simulated) == shown(real)
