"""Writing the quota tree over HTTP: previews, refused cells, versions, and two administrators."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace
from tests.apps.running_console import Page, console
from tests.apps.tree_writes import FakeWrites, demo_object
from tests.console.clusters import EPOCH, cluster, cpu_node
from tests.console.quota_demo import five
from tests.console.sign_in_parts import ANNA, BOB, FakeSignInApi, Parts, group
from tests.console.worlds import still_world

from fairlead.console.boards.quota.tree_edit import node_orders, read_tree
from fairlead.console.pages.endpoints import BASE
from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.model.people.rows import GroupStatus
from fairlead.model.quota.rows import Namespace
from fairlead.model.records.audit import AuditFilter, AuditRow
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.ports import Store

PATH = BASE + "/quota/tree"
LEAF = "root.b.1"
TEAM = replace(group("a"), leaf=LEAF, status=GroupStatus(LEAF, ("ns3",)))


def seen(writes: FakeWrites) -> ClusterSnapshot:
    """All 40 cores are in use in root.a; two pods wait in root.b.1."""
    pods = [five(space, number) for space in ("ns1", "ns2") for number in range(4)]
    pods += [five("ns3", number, waits=True) for number in range(2)]
    tree = read_tree(writes.tree) if writes.tree is not None else None
    made = cluster([cpu_node()], pods, quota=tree.root if tree else None)
    spaces = tuple(Namespace(name, uid=name) for name in ("ns1", "ns2", "ns3", "ns4"))
    sources = {**made.sources, "namespaces": Source("namespaces", good_at=EPOCH)}
    return replace(made, quota_tree=tree, namespaces=spaces, sources=sources)


class Editor(Struct):
    """An administrator's client."""

    page: Page
    writes: FakeWrites
    store: Store
    nodes: list[dict[str, Any]]
    version: str = "uid-tree.1"
    token: str = "token-of-anna"

    async def put(
        self, *, dry: bool = False, more: dict[str, Any] | None = None, **headers: str
    ) -> tuple[int, Any]:
        sent = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "If-Match": f'"{self.version}"',
            **headers,
        }
        status, _, body = await self.page.get(
            PATH + ("?dryRun=true" if dry else ""),
            method="PUT",
            data=json.dumps({"nodes": self.nodes} | (more or {})).encode(),
            headers={key: value for key, value in sent.items() if value},
        )
        return status, json.loads(body)

    def node(self, name: str) -> dict[str, Any]:
        return next(each for each in self.nodes if each["name"] == name)

    def stored(self, name: str) -> dict[str, Any]:
        """The node as the API server has it."""
        ahead = [self.writes.tree["spec"]["root"]] if self.writes.tree else []
        while ahead:
            node = ahead.pop()
            if node["name"] == name:
                return dict(node)
            ahead += node.get("children", [])
        raise KeyError(name)

    async def rows(self) -> list[AuditRow]:
        return [each async for each in self.store.audit_rows(AuditFilter())]

    async def ask(self, path: str) -> tuple[int, Any]:
        status, _, body = await self.page.get(
            BASE + path, headers={"Authorization": f"Bearer {self.token}"}
        )
        return status, json.loads(body)


@asynccontextmanager
async def editing(*, has_tree: bool = True) -> AsyncIterator[Editor]:
    writes = FakeWrites(demo_object() if has_tree else None)
    folder = tempfile.TemporaryDirectory()
    store = await open_store(store_address(f"sqlite:///{folder.name}/store.sqlite"), print)
    api = FakeSignInApi((ANNA, BOB), (TEAM,))
    desk = Parts(api).desk(records=store, versions=store, store=store)
    world = replace(still_world(seen(writes)), writes=writes)
    async with console(world, desk=desk) as page:
        nodes = node_orders(read_tree(writes.tree)) if writes.tree else []
        yield Editor(page, writes, store, msgspec.to_builtins(nodes))
    await store.close()
    folder.cleanup()


async def test_the_preview_names_the_pods_that_go_and_writes_nothing() -> None:
    async with editing() as editor:
        editor.node(LEAF)["min"] = {"cpu": "10"}
        status, preview = await editor.put(dry=True)
        assert (status, preview["valid"], preview["fields"]) == (200, True, [])
        gone = [(each["namespace"], each["pod"]) for each in preview["whatIf"]["evicted"]]
        assert len(gone) == 2
        assert [each["name"] for each in preview["effects"] if each["kind"] == "Pod"] == [
            pod for _, pod in gone
        ]
        assert preview["nodes"] == [
            {
                "name": LEAF,
                "change": "changed",
                "cells": [{"cell": "min.cpu", "before": "", "after": "10"}],
            }
        ]
        assert preview["raised"] == [LEAF]
        assert editor.writes.asked == []
        assert [each.action for each in await editor.rows()] == []


async def test_a_written_tree_keeps_what_the_editor_does_not_show() -> None:
    async with editing() as editor:
        editor.node("root.a.1")["max"] = {"cpu": "19500m"}
        assert (await editor.put())[0] == 200
        leaf = editor.stored("root.a.1")
        assert leaf["resourceflavors"] == ["a100"]
        assert (leaf["min"], leaf["max"]) == ({"cpu": 10}, {"cpu": "19500m"})
        assert editor.stored("root.b.2")["min"] == {"cpu": "10000m"}
        assert editor.stored("root")["attributes"] == {"fairlead.io/reclaim-scope": "leaf"}
        assert {account for _, account in editor.writes.asked} == {""}
        ended = [(each.action, str(each.result), each.actor) for each in await editor.rows()]
        assert ended == [("quota.tree.update", "ok", "anna")]


async def test_a_refused_cell_has_the_editors_rule_and_quotas_code() -> None:
    async with editing() as editor:
        editor.node("root.a.1")["min"] = {"cpu": "11"}
        editor.node("root.b.2")["max"] = {"cpu": "41"}
        for dry in (True, False):
            status, answer = await editor.put(dry=dry)
            assert status == (200 if dry else 422)
            cells = {(each["path"], each["rule"], each["code"]) for each in answer["fields"]}
            assert cells == {
                ("root.a.1.min.cpu", "children-min", "SumOfMinExceedsParent"),
                ("root.b.2.max.cpu", "child-max", "MaxExceedsParent"),
            }
        assert editor.writes.asked == []


async def test_of_two_administrators_the_second_gets_the_tree_as_it_is() -> None:
    async with editing() as editor:
        editor.node("root.a.1")["max"] = {"cpu": "15"}
        assert (await editor.put())[0] == 200
        editor.node("root.b.2")["max"] = {"cpu": "15"}
        status, answer = await editor.put()
        assert (status, answer["code"]) == (409, "conflict")
        now = {each["name"]: each for each in answer["current"]["items"]}
        assert now["root.a.1"]["bounds"][0]["maxText"] == "15"
        assert answer["current"]["treeVersion"] == "uid-tree.2"
        assert editor.stored("root.b.2")["max"] == {"cpu": "20"}
        editor.version = answer["current"]["treeVersion"]
        assert (await editor.put())[0] == 200
        assert editor.stored("root.b.2")["max"] == {"cpu": "15"}


def once(do: Callable[[], None]) -> Callable[[], None]:
    left = [do]
    return lambda: left.pop()() if left else None


async def test_a_write_of_the_status_meanwhile_is_no_conflict_and_of_the_tree_is_one() -> None:
    async with editing() as editor:
        editor.writes.before = once(editor.writes.touch)
        editor.node("root.a.1")["max"] = {"cpu": "15"}
        assert (await editor.put())[0] == 200
        assert len(editor.writes.asked) == 2

        def change() -> None:
            assert editor.writes.tree is not None
            editor.writes.touch()
            editor.writes.tree["metadata"]["generation"] += 1

        editor.version = "uid-tree.2"
        editor.writes.before = once(change)
        editor.node("root.a.1")["max"] = {"cpu": "14"}
        status, answer = await editor.put()
        assert (status, answer["code"]) == (409, "conflict")
        assert editor.stored("root.a.1")["max"] == {"cpu": "15"}


async def test_a_renamed_leaf_takes_its_group_with_it() -> None:
    async with editing() as editor:
        leaf = editor.node(LEAF)
        leaf["name"] = "root.b.research"
        status, preview = await editor.put(dry=True)
        assert (status, preview["fields"]) == (200, [])
        assert preview["groups"] == [{"group": "a", "before": LEAF, "after": "root.b.research"}]
        assert (preview["governed"], preview["released"]) == ([], [])
        assert [each["cells"] for each in preview["nodes"]] == [
            [{"cell": "name", "before": LEAF, "after": "root.b.research"}]
        ]


async def test_namespaces_that_do_not_exist_are_created_as_the_administrator() -> None:
    """Only if the administrator wants it, and before the tree that names them."""
    async with editing() as editor:
        editor.node(LEAF)["namespaces"] = ["ns3", "new-b", "new-a"]
        wanted = {"createNamespaces": True}
        _, preview = await editor.put(dry=True)
        assert preview["unknownNamespaces"] == ["new-a", "new-b"]
        assert "Namespace" not in {each["kind"] for each in preview["effects"]}
        _, preview = await editor.put(dry=True, more=wanted)
        assert preview["unknownNamespaces"] == []
        made = [each for each in preview["effects"] if each["kind"] == "Namespace"]
        assert [(each["verb"], each["name"]) for each in made] == [
            ("create", "new-a"),
            ("create", "new-b"),
        ]
        bindings = {each["namespace"] for each in preview["effects"] if "Binding" in each["kind"]}
        assert {"new-a", "new-b"} <= bindings, "Bob's group gets rights there"
        assert editor.writes.asked == []
        editor.writes.spaces = {"new-b"}  # another client was faster
        assert (await editor.put(more=wanted))[0] == 200
        asked = [(each.manifest["kind"], account) for each, account in editor.writes.asked[:2]]
        assert asked == [("Namespace", "system:serviceaccount:kube-ai:anna")] * 2
        assert editor.writes.spaces == {"new-a", "new-b"}
        assert editor.stored(LEAF)["namespaces"] == ["ns3", "new-b", "new-a"]
        last = (await editor.rows())[-1]
        assert "created namespace new-a, created namespace new-b" in last.summary


async def test_no_tree_is_written_whose_namespaces_cannot_be_created() -> None:
    async with editing() as editor:
        editor.node(LEAF)["namespaces"] = ["ns3", "new"]
        editor.writes.forbidden = {"system:serviceaccount:kube-ai:anna"}
        status, answer = await editor.put(more={"createNamespaces": True})
        assert (status, answer["code"]) == (403, "forbidden")
        assert editor.stored(LEAF)["namespaces"] == ["ns3"]


async def test_attributes_are_edited_and_kept_where_the_edit_has_none() -> None:
    async with editing() as editor:
        assert editor.node("root")["attributes"] == {"fairlead.io/reclaim-scope": "leaf"}
        editor.node("root")["attributes"] = None
        leaf = editor.node("root.a.1")
        assert "resourceflavors" in leaf["attributes"], "ACK's own field is shown as one of them"
        leaf["attributes"]["fairlead.io/user-order"] = "fair"
        _, preview = await editor.put(dry=True)
        cells = [each["cells"] for each in preview["nodes"] if each["name"] == "root.a.1"]
        assert cells == [
            [{"cell": "attributes.fairlead.io/user-order", "before": "", "after": "fair"}]
        ]
        assert (await editor.put())[0] == 200
        assert editor.stored("root.a.1")["attributes"] == {"fairlead.io/user-order": "fair"}
        assert editor.stored("root.a.1")["resourceflavors"] == ["a100"]
        assert editor.stored("root")["attributes"] == {"fairlead.io/reclaim-scope": "leaf"}


@pytest.mark.parametrize(
    "attributes",
    [
        {"fairlead.io/user-order": "alphabetical"},
        {"fairlead.io/user-cap": "five"},
        {"": "x"},
    ],
)
async def test_a_malformed_attribute_is_refused_on_its_cell(attributes: dict[str, str]) -> None:
    async with editing() as editor:
        editor.node("root.a.1")["attributes"] = attributes
        status, answer = await editor.put()
        assert status == 422
        assert [(each["path"], each["rule"]) for each in answer["fields"]] == [
            ("root.a.1.attributes", "attribute")
        ]


async def test_a_namespace_taken_from_a_leaf_takes_its_bindings_away() -> None:
    async with editing() as editor:
        editor.node(LEAF)["namespaces"] = ["ns-new"]
        status, preview = await editor.put(dry=True)
        assert (status, preview["fields"]) == (200, [])
        assert (preview["governed"], preview["released"]) == (["ns-new"], ["ns3"])
        assert preview["unknownNamespaces"] == ["ns-new"]
        removed = [each for each in preview["effects"] if each["kind"] == "RoleBinding"]
        assert [(each["verb"], each["namespace"]) for each in removed] == [("delete", "ns3")]


async def test_a_leaf_with_a_group_is_not_deleted() -> None:
    async with editing() as editor:
        editor.nodes = [each for each in editor.nodes if each["name"] != LEAF]
        status, answer = await editor.put(dry=True)
        assert status == 200
        [fault] = answer["fields"]
        assert (fault["path"], fault["rule"], fault["code"]) == (LEAF, "delete-leaf", "LeafBound")
        assert "UserGroup a" in fault["error"]


async def test_the_versions_have_the_tree_that_was_found_and_each_that_was_written() -> None:
    async with editing() as editor:
        editor.node("root.a.1")["max"] = {"cpu": "15"}
        assert (await editor.put())[0] == 200
        _, answer = await editor.ask("/quota/tree/versions")
        assert [each["actor"] for each in answer["items"]] == ["anna", ""]
        found = {each["name"]: each for each in answer["items"][1]["nodes"]}
        assert found["root.a.1"]["max"] == {"cpu": "20"}
        assert "resourceflavors" in answer["items"][1]["yaml"]
        editor.version, editor.nodes = "uid-tree.2", answer["items"][1]["nodes"]
        assert (await editor.put())[0] == 200
        assert editor.stored("root.a.1")["max"] == {"cpu": "20"}


async def test_the_first_tree_of_a_cluster_is_created() -> None:
    async with editing(has_tree=False) as editor:
        editor.version = "none"
        editor.nodes = [
            {"name": "root", "min": {"cpu": "4"}, "max": {"cpu": "4"}},
            {
                "name": "root.a",
                "parent": "root",
                "min": {"cpu": "4"},
                "max": {},
                "namespaces": ["ns4"],
            },
        ]
        _, preview = await editor.put(dry=True)
        assert preview["effects"][0]["verb"] == "create"
        assert (await editor.put())[0] == 200
        assert editor.stored("root.a") == {
            "name": "root.a",
            "min": {"cpu": "4"},
            "namespaces": ["ns4"],
        }


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"If-Match": ""}, 400, "malformed"),
        ({"Authorization": "Bearer token-of-bob"}, 403, "forbidden"),
        ({"Authorization": ""}, 401, "signed-out"),
        ({"Content-Type": "text/plain"}, 415, "media-type"),
    ],
)
async def test_who_may_not_writes_nothing(change: dict[str, str], status: int, code: str) -> None:
    async with editing() as editor:
        editor.node("root.a.1")["max"] = {"cpu": "15"}
        found, answer = await editor.put(**change)
        assert (found, answer["code"]) == (status, code)
        assert editor.writes.asked == []


@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [{"name": "root"}, {"name": "b", "parent": "a"}],
        [{"name": "root"}, {"name": "root2"}],
    ],
)
async def test_what_is_no_tree_is_malformed(nodes: list[dict[str, str]]) -> None:
    async with editing() as editor:
        editor.nodes = nodes
        status, answer = await editor.put(dry=True)
        assert (status, answer["code"]) == (400, "malformed"), answer
        assert answer["hint"]


async def test_a_researcher_learns_nothing_of_when_the_tree_was_changed() -> None:
    async with editing() as editor:
        assert (await editor.ask("/quota/tree"))[1]["treeVersion"] == "uid-tree.1"
        editor.token = "token-of-bob"
        _, answer = await editor.ask("/quota/tree")
        assert (answer["treeVersion"], answer["managed"]) == ("", [])
        assert (await editor.ask("/quota/tree/versions"))[0] == 403
