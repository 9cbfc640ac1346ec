"""An older version that takes an installation over, over a cluster in memory: what is refused, and
what the inventory keeps. tests/nodes has the way back on real nodes.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.apps.memory_target import MemoryTarget, Time

from fairlead.apps.installation.installer import Installer, Wanted
from fairlead.errors import UserError
from fairlead.model.actions import ObjectRef
from fairlead.model.installation import Installation, Parts
from fairlead.wire.installation.inventory import Inventory, parse_inventory, render_inventory
from fairlead.wire.quota.tree_definition import quota_tree_definition

SMALL = Installation(
    parts=Parts(console=False, cluster_exporter=False, gpu_sharing=False, node_agent=False)
)
OF_NEWER = ObjectRef("apiextensions.k8s.io/v1", "CustomResourceDefinition", "newthings.fairlead.io")


def install(
    cluster: MemoryTarget, version: str, *, oldest: str = "0.1.0", may_go_back: bool = False
) -> None:
    time = Time()
    run = Installer(cluster, str, time.now, time.sleep)
    wanted = Wanted(version, replace(SMALL, image=f"fairlead:{version}"), oldest)
    run.carry_out(run.plan(wanted, may_go_back=may_go_back))


def inventory(cluster: MemoryTarget) -> Inventory:
    found = cluster.inventory("fairlead-system")
    assert found is not None
    return parse_inventory(found)


def refusal(cluster: MemoryTarget, version: str, *, may_go_back: bool = False) -> UserError:
    """What refuses the version; nothing is written."""
    cluster.writes.clear()
    with pytest.raises(UserError) as refused:
        install(cluster, version, may_go_back=may_go_back)
    assert cluster.writes == []
    return refused.value


def test_an_older_version_takes_over_only_if_it_is_asked_to() -> None:
    cluster = MemoryTarget()
    install(cluster, "0.2.0")
    refused = refusal(cluster, "0.1.9")
    assert refused.what == "version `0.2.0` is installed, and `0.1.9` is older"
    assert refused.hint == (
        "use the fairlead of version 0.2.0 or later; `fairlead upgrade --allow-downgrade` goes back"
    )
    install(cluster, "0.1.9", may_go_back=True)
    assert inventory(cluster).version == "0.1.9"


def test_a_version_that_would_misread_what_is_written_never_takes_over() -> None:
    """Also after a way back of one version: what the newest wrote is still in the cluster."""
    cluster = MemoryTarget()
    install(cluster, "0.4.0", oldest="0.3.0")
    for _ in range(2):
        refused = refusal(cluster, "0.2.0", may_go_back=True)
        assert "`0.2.0` does not understand what" in refused.what
        assert refused.what.endswith("`0.3.0` and later do")
        install(cluster, "0.3.0", oldest="0.1.0", may_go_back=True)
        assert inventory(cluster).oldest == "0.3.0"
    install(cluster, "0.5.0", oldest="0.1.0")
    assert inventory(cluster).oldest == "0.1.0", "a newer version knows what it can read"


def test_an_inventory_without_the_oldest_version_is_read() -> None:
    cluster = MemoryTarget()
    written: Any = render_inventory(Inventory("0.1.0", "complete", "", ()))
    del written["data"]["oldest"]
    cluster.keep(written)
    assert inventory(cluster).oldest == "0.1.0"


def tree(**fields: object) -> dict[str, Any]:
    leaf = {"name": "root.a", "min": {"cpu": 1}, "max": {"cpu": 2}, "namespaces": ["a"], **fields}
    root = {"name": "root", "min": {"cpu": 1}, "max": {"cpu": 2}, "children": [leaf]}
    meta = {"name": "t", "namespace": "kube-system", "labels": {"any": "one"}}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": meta,
        "spec": {"root": root},
        "status": {"of-a-newer-version": 1},
    }


@pytest.mark.parametrize("fields", [{}, {"lateField": 3}], ids=["known", "of a newer version"])
def test_no_field_of_a_tree_is_lost(fields: dict[str, object]) -> None:
    cluster = MemoryTarget()
    install(cluster, "0.2.0")
    cluster.keep(tree(**fields))
    if not fields:
        install(cluster, "0.1.0", may_go_back=True)
        return
    refused = refusal(cluster, "0.1.0", may_go_back=True)
    name = quota_tree_definition()["metadata"]["name"]
    assert refused.what == (
        f"definition `{name}` of this version lacks fields that objects have: "
        "ElasticQuotaTree kube-system/t: .spec.root.children[0].lateField"
    )
    assert refused.hint == "remove these fields first, or keep the installed version"


def test_a_definition_that_the_older_version_does_not_have_stays_and_is_listed() -> None:
    """So that `fairlead uninstall --delete-data` of that version removes it."""
    cluster = MemoryTarget()
    install(cluster, "0.2.0")
    before = inventory(cluster)
    cluster.keep(render_inventory(replace(before, objects=(*before.objects, OF_NEWER))))
    definition = quota_tree_definition()
    spec = {**definition["spec"], "group": "fairlead.io"}
    cluster.keep({**definition, "metadata": {"name": OF_NEWER.name}, "spec": spec})
    install(cluster, "0.1.0", may_go_back=True)
    assert OF_NEWER in inventory(cluster).objects
    assert cluster.get(OF_NEWER) is not None
