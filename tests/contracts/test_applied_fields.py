"""Contract: whether applying an object again would change nothing, against what the API
server's own dry run answers (docs/spec/components.md#plan). Over both API servers.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contracts.api_client import APPLY, MERGE, ApiClient
from tests.contracts.conftest import new_space

from fairlead.rules.installation.comparable import changed_fields
from fairlead.wire.components.applied_fields import is_as_applied

MANAGER = "fairlead"


def manifests(space: str) -> dict[str, dict[str, Any]]:
    """With lists that have keys, sets, lists that are replaced as a whole, and empty mappings."""

    def obj(version: str, kind: str, **more: Any) -> dict[str, Any]:
        meta = {"name": "made", "namespace": space, "labels": {"a": "b"}}
        return {"apiVersion": version, "kind": kind, "metadata": meta, **more}

    container = {
        "name": "main",
        "image": "image:1",
        "args": ["one", "two"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    template = {"metadata": {"labels": {"app": "made"}}, "spec": pod}
    return {
        "configmaps": obj("v1", "ConfigMap", data={"a": "1", "b": "2"}),
        "deployments": obj(
            "apps/v1",
            "Deployment",
            spec={
                "replicas": 0,
                "selector": {"matchLabels": {"app": "made"}},
                "template": template,
            },
        ),
        "services": obj(
            "v1",
            "Service",
            spec={
                "selector": {"app": "made"},
                "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}],
            },
        ),
        "roles": obj(
            "rbac.authorization.k8s.io/v1",
            "Role",
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        ),
    }


GROUPS = {"deployments": "apis/apps/v1", "roles": "apis/rbac.authorization.k8s.io/v1"}
EDITS: dict[str, list[dict[str, Any]]] = {
    "configmaps": [{"data": {"a": "9"}}, {"data": {"a": None}}],
    "deployments": [
        {"spec": {"replicas": 2}},
        {"metadata": {"labels": {"a": "c"}}},
        {"metadata": {"labels": None}},
    ],
    "services": [{"spec": {"selector": {"app": "other"}}}],
    "roles": [{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}],
}
"""What another program changes of what was applied."""
NO_EDITS: dict[str, dict[str, Any]] = {
    "configmaps": {"data": {"c": "3"}},
    "deployments": {"metadata": {"annotations": {"note": "x"}}},
    "services": {"metadata": {"labels": {"other": "y"}}},
    "roles": {"metadata": {"annotations": {"note": "x"}}},
}
"""What another program adds, which is none of Fairlead's."""


class Applied:
    def __init__(self, api: ApiClient, plural: str) -> None:
        self.api = api
        space = new_space(api)
        self.manifest = manifests(space)[plural]
        self.path = f"/{GROUPS.get(plural, 'api/v1')}/namespaces/{space}/{plural}/made"
        self.apply(self.manifest)

    def apply(self, manifest: dict[str, Any], **query: str) -> Any:
        answer = self.api.patch(self.path, manifest, kind=APPLY, fieldManager=MANAGER, **query)
        assert answer.status in (200, 201), answer.message
        return answer.body

    def edit(self, patch: dict[str, Any]) -> None:
        answer = self.api.patch(self.path, patch, kind=MERGE, fieldManager="other")
        assert answer.status == 200, answer.message

    def proven(self, manifest: dict[str, Any] | None = None) -> bool:
        """Whether it is proven that nothing changes. It never is if the dry run differs."""
        manifest = manifest or self.manifest
        found = self.api.get(self.path).body
        while True:
            proven = is_as_applied(manifest, found, MANAGER)
            if not proven:
                return False
            tried = self.apply(manifest, dryRun="All", force="true")
            before, found = found, self.api.get(self.path).body
            if version(before) == version(found):  # no controller wrote in between
                assert changed_fields(before, tried) == []
                return True


def version(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["resourceVersion"])


@pytest.mark.parametrize("plural", [*EDITS])
def test_what_was_applied_is_known_without_a_dry_run(api: ApiClient, plural: str) -> None:
    assert Applied(api, plural).proven()


@pytest.mark.parametrize("plural", [*EDITS])
def test_what_another_program_changes_is_a_change(api: ApiClient, plural: str) -> None:
    for patch in EDITS[plural]:
        applied = Applied(api, plural)
        applied.edit(patch)
        assert not applied.proven(), patch
    applied = Applied(api, plural)
    applied.edit(NO_EDITS[plural])
    assert applied.proven(), "what is beside the fields of the manifest is no change"


@pytest.mark.parametrize("plural", [*EDITS])
def test_a_manifest_with_other_fields_is_a_change(api: ApiClient, plural: str) -> None:
    applied = Applied(api, plural)
    less = {**applied.manifest, "metadata": {**applied.manifest["metadata"], "labels": {}}}
    more = {
        **applied.manifest,
        "metadata": {**applied.manifest["metadata"], "labels": {"a": "b", "c": "d"}},
    }
    for manifest in (less, more):
        assert not applied.proven(manifest), "a field is withdrawn, or is new"
    found = applied.api.get(applied.path).body
    assert not is_as_applied(applied.manifest, found, "another")


def test_items_of_lists_with_keys(api: ApiClient) -> None:
    applied = Applied(api, "deployments")
    spec = applied.manifest["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    def with_container(**more: Any) -> dict[str, Any]:
        pod = {**spec, "containers": [{**container, **more}]}
        template = {**applied.manifest["spec"]["template"], "spec": pod}
        return {**applied.manifest, "spec": {**applied.manifest["spec"], "template": template}}

    assert applied.proven(with_container())
    for more in (
        {"image": "image:2"},
        {"args": ["two", "one"]},
        {"env": container["env"][:1]},
        {"env": [*container["env"], {"name": "C", "value": "3"}]},
        {"env": [{"name": "A", "value": "9"}, container["env"][1]]},
        {"name": "other"},
    ):
        assert not applied.proven(with_container(**more)), more
