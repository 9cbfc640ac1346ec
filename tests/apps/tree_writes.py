"""An API server that has one quota tree and objects that it is asked to change, for writes of the
console.
"""

from __future__ import annotations

import copy
from typing import Any

from fairlead.errors import ChangedMeanwhile, Forbidden, NotFound
from fairlead.model.actions import CreateObject, DeleteObject, ObjectAction, ObjectRef, PatchObject


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value)
    return made


def demo_object() -> dict[str, Any]:
    """The 40-core demo as another client wrote it, with a field of a newer version in a leaf."""

    def node(name: str, least: Any, most: Any, **more: Any) -> dict[str, Any]:
        return {"name": name, "min": {"cpu": least}, "max": {"cpu": most}, **more}

    def leaf(name: str, space: str, least: Any = 10) -> dict[str, Any]:
        return node(name, least, "20", namespaces=[space])

    a = [leaf("root.a.1", "ns1"), leaf("root.a.2", "ns2")]
    b = [leaf("root.b.1", "ns3", 0), leaf("root.b.2", "ns4", "10000m")]
    a[0]["resourceflavors"] = ["a100"]
    root = node("root", 40, 40, attributes={"fairlead.io/reclaim-scope": "leaf"})
    root["children"] = [node("root.a", 20, 40, children=a), node("root.b", 20, 40, children=b)]
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {
            "name": "elasticquotatree",
            "namespace": "kube-system",
            "uid": "uid-tree",
            "generation": 1,
            "resourceVersion": "10",
        },
        "spec": {"root": root},
    }


class FakeWrites:
    """`tree`: the object; `asked`: every action with the account that it was asked as. `before`:
    called before each write. `forbidden`: accounts that may write nothing. `spaces`: namespaces
    that exist.
    """

    def __init__(self, tree: dict[str, Any] | None = None) -> None:
        self.tree = tree
        self.asked: list[tuple[ObjectAction, str]] = []
        self.before: Any = lambda: None
        self.forbidden: set[str] = set()
        self.spaces: set[str] = set()

    async def read(self, target: ObjectRef, account: str = "") -> dict[str, Any]:
        if target.kind != "ElasticQuotaTree" or self.tree is None:
            raise NotFound("kubernetes", f"no {target.title}")
        return copy.deepcopy(self.tree)

    async def write(self, action: ObjectAction, account: str = "") -> dict[str, Any] | None:
        self.before()
        self.asked.append((action, account))
        if account in self.forbidden:
            raise Forbidden("kubernetes", f"User {account!r} cannot", "")
        if isinstance(action, CreateObject) and action.manifest["kind"] == "Namespace":
            name = action.manifest["metadata"]["name"]
            if name in self.spaces:
                raise ChangedMeanwhile("kubernetes", "exists already")
            self.spaces.add(name)
            return dict(action.manifest)
        if isinstance(action, CreateObject):
            if self.tree is not None:
                raise ChangedMeanwhile("kubernetes", "exists already")
            self.tree = {**demo_object(), **action.manifest}
            self.tree["metadata"] = demo_object()["metadata"]
        elif isinstance(action, PatchObject) and action.target.kind == "ElasticQuotaTree":
            return self._patched(dict(action.patch))
        else:
            assert isinstance(action, PatchObject | DeleteObject)
            return None
        return copy.deepcopy(self.tree)

    def touch(self) -> None:
        """A write of the status."""
        assert self.tree is not None
        meta = self.tree["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)

    def _patched(self, patch: dict[str, Any]) -> dict[str, Any]:
        assert self.tree is not None
        if patch["metadata"]["resourceVersion"] != self.tree["metadata"]["resourceVersion"]:
            raise ChangedMeanwhile("kubernetes", "the object has been modified")
        before = self.tree
        self.tree = merged(before, patch)
        self.touch()
        if self.tree["spec"] != before["spec"]:
            self.tree["metadata"]["generation"] += 1
        return copy.deepcopy(self.tree)
