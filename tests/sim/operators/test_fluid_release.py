"""A foreign release of Helm with the name of a runtime: Fluid removes it with its objects."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any

import pytest
from tests.sim.operators.fluid_world import NAME, accelerate, claim, dataset, install
from tests.sim.small_world import NAMESPACE, live, small_world

from fairlead_sim.objects.resources import ALLUXIO_RUNTIMES, CONFIG_MAPS, DATASETS
from fairlead_sim.world.world import World

MANIFEST = (
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}\n---\n# nothing\n---\n"
    "apiVersion: v1\nkind: Secret\nmetadata: {name: absent}\n"
)


def packed(content: Any) -> str:
    return b64encode(gzip.compress(json.dumps(content).encode())).decode()


def with_foreign_release(content: str) -> World:
    world = small_world()
    install(world)
    claim(world)
    labels = {"owner": "helm", "name": NAME, "status": "deployed", "version": "1"}
    for name, more in (
        ("theirs", {}),
        ("other", {}),
        (f"sh.helm.release.v1.{NAME}.v1", {"labels": labels}),
    ):
        meta = {"name": name, "namespace": NAMESPACE, **more}
        data = {"release": content} if more else {}
        world.cluster.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        )
    accelerate(world)
    live(world, 60)
    assert dataset(world)["status"]["phase"] == "NotBound"
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 60)
    return world


def names(world: World) -> set[str]:
    return {each["metadata"]["name"] for each in world.cluster.list(CONFIG_MAPS, NAMESPACE)}


def test_its_objects_go_and_those_of_others_stay() -> None:
    world = with_foreign_release(packed({"manifest": MANIFEST}))
    assert names(world) & {"theirs", "other", f"sh.helm.release.v1.{NAME}.v1"} == {"other"}


@pytest.mark.parametrize(
    "content",
    [
        *("", "no base64!", b64encode(b"no gzip").decode(), packed("no object"), packed({})),
        *(packed({"manifest": 7}), packed({"manifest": "{a: ["}), packed({"manifest": "- 1"})),
    ],
)
def test_a_record_that_cannot_be_read_goes_alone(content: str) -> None:
    world = with_foreign_release(content)
    assert names(world) & {"theirs", "other", f"sh.helm.release.v1.{NAME}.v1"} == {
        *("theirs", "other")
    }
    assert not world.cluster.list(ALLUXIO_RUNTIMES, NAMESPACE)
