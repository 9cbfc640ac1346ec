"""Owners of fields where no real server is asked: their order in time, writes from inside the
world, and a world that begins again.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from tests.asgi import TOKEN, ask
from tests.protobuf_bodies import encoded, envelope
from tests.sim.objects import EPOCH, StillClock

from fairlead_sim.api.server import ApiServer
from fairlead_sim.objects.resources import CONFIG_MAPS, RESOURCES
from fairlead_sim.ownership.entries import APPLY, UPDATE, FieldOwner, FieldWriter, written
from fairlead_sim.ownership.field_paths import fields_of, in_order, paths_of, shown_path
from fairlead_sim.ownership.field_types import kind_type
from fairlead_sim.schema.protobuf import parse_protobuf
from fairlead_sim.store.cluster import StoredCluster

Object = dict[str, Any]
_PATH: Final = "/api/v1/namespaces/default/configmaps/a"


class Cluster:
    """A cluster and its server, at a time that the test chooses."""

    def __init__(self) -> None:
        self.clock = StillClock()
        self.store = StoredCluster(self.clock)
        self.server = ApiServer(self.store, self.clock, [TOKEN])

    async def apply(self, manager: str, force: bool = False, **data: str) -> tuple[int, Object]:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
        return await ask(
            self.server,
            "PATCH",
            f"{_PATH}?fieldManager={manager}&force={str(force).lower()}",
            json.dumps(body).encode(),
            {"content-type": "application/apply-patch+yaml"},
        )

    async def update(self, program: str, **data: str | None) -> tuple[int, Object]:
        return await ask(
            self.server,
            "PATCH",
            _PATH,
            json.dumps({"data": data}).encode(),
            {"content-type": "application/merge-patch+json", "user-agent": program},
        )

    @property
    def stored(self) -> Object:
        found = self.store.get(CONFIG_MAPS, "default", "a")
        assert found is not None
        return found

    @property
    def managers(self) -> list[tuple[str, str, str]]:
        return [
            (entry["manager"], entry["operation"], entry["time"])
            for entry in self.stored["metadata"]["managedFields"]
        ]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_entries_stand_by_operation_and_time(cluster: Cluster) -> None:
    for at, manager in ((0, "z"), (60, "y")):
        cluster.clock.at = EPOCH + at
        await cluster.apply(manager, **{manager: "1"})
    cluster.clock.at = EPOCH + 120
    await cluster.update("curl/8.1 (x86)", u="1")
    assert [(name, how) for name, how, _ in cluster.managers] == [
        ("z", "Apply"),
        ("y", "Apply"),
        ("curl", "Update"),
    ]
    times = [at for _, _, at in cluster.managers]
    assert times == sorted(times) and len(set(times)) == 3


async def test_what_is_applied_again_keeps_its_time_and_version(cluster: Cluster) -> None:
    await cluster.apply("one", a="1")
    before = cluster.stored
    cluster.clock.at = EPOCH + 60
    await cluster.apply("one", a="1")
    assert cluster.stored is before


async def test_writes_from_inside_the_world_keep_the_owners(cluster: Cluster) -> None:
    await cluster.apply("one", a="1", b="1")
    before = cluster.managers
    cluster.store.mutate(
        CONFIG_MAPS, "default", "a", lambda old: {**old, "data": {**old["data"], "a": "2"}}
    )
    bare = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default"},
    }
    cluster.store.update({**bare, "data": {"a": "3", "b": "1"}})
    assert cluster.managers == before
    status, _ = await cluster.apply("one", b="1")
    assert (status, cluster.stored["data"]) == (200, {"b": "1"})


async def test_what_the_world_makes_itself_has_no_owner_before_its_first_apply(
    cluster: Cluster,
) -> None:
    bare = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    cluster.store.create({**bare, "data": {"a": "1"}})
    assert "managedFields" not in cluster.stored["metadata"]
    await cluster.update("curl/8", b="1")
    assert "managedFields" not in cluster.stored["metadata"]
    status, answer = await cluster.apply("one", a="2")
    assert status == 409
    assert answer["message"] == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    )
    await cluster.apply("one", force=True, a="2")
    assert [name for name, _, _ in cluster.managers] == ["one", "before-first-apply"]


async def test_a_world_that_begins_again_knows_who_withdraws(cluster: Cluster) -> None:
    await cluster.apply("one", a="1", b="1")
    saved = json.loads(json.dumps(cluster.stored))
    second = Cluster()
    second.store.restore(saved)
    await second.apply("one", a="1")
    assert second.stored["data"] == {"a": "1"}


async def test_a_watch_and_a_list_show_the_owners(cluster: Cluster) -> None:
    watch = cluster.store.watch(CONFIG_MAPS)
    await cluster.apply("one", a="1")
    (event,) = watch.poll()
    _, found = await ask(cluster.server, "GET", _PATH.removesuffix("/a"))
    assert (
        event.object["metadata"]["managedFields"] == found["items"][0]["metadata"]["managedFields"]
    )


async def test_a_body_in_protobuf_brings_its_entries(cluster: Cluster) -> None:
    """Go clients send back what they have read, in protobuf as in JSON."""
    await cluster.apply("one", a="1")
    stored = cluster.stored
    body = envelope("ConfigMap", encoded("core.ConfigMap", stored))
    assert parse_protobuf(body)["metadata"]["managedFields"] == stored["metadata"]["managedFields"]


def test_paths_that_end_at_an_object_come_first() -> None:
    fields = {
        "f:spec": {
            "f:a": {"f:b": {}},
            "f:c": {},
            "f:ports": {'k:{"port":443}': {}, 'k:{"port":80}': {".": {}, "f:x": {}}},
        }
    }
    assert fields_of(paths_of(fields)) == fields
    assert [shown_path(path) for path in in_order(paths_of(fields))] == [
        ".spec.c",
        ".spec.a.b",
        ".spec.ports[port=80]",
        ".spec.ports[port=443]",
        ".spec.ports[port=80].x",
    ]


def test_writers_of_one_name_are_distinct() -> None:
    paths = {("f:data",)}
    owners = {
        writer: FieldOwner(paths, "v1")
        for writer in (
            FieldWriter("a", UPDATE, "v1", "status"),
            FieldWriter("a", UPDATE, "v1"),
            FieldWriter("a", APPLY),
        )
    }
    assert [(entry["operation"], entry.get("subresource")) for entry in written(owners)] == [
        ("Apply", None),
        ("Update", None),
        ("Update", "status"),
    ]


@pytest.mark.parametrize(
    "ref", RESOURCES, ids=[f"{ref.kind}.{ref.api_version}" for ref in RESOURCES]
)
def test_every_kind_has_a_type(ref: Any) -> None:
    found = kind_type(ref)
    assert found.map is not None and found.map.named("metadata") is not None
