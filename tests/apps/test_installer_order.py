"""`fairlead install` and `upgrade` over a cluster in memory: what they write, in which order, and
what they refuse; tests/kube/test_installation.py has a real one.
"""

from __future__ import annotations

import pytest
from tests.apps.memory_target import MemoryTarget, Time

from fairlead.apps.installation.installer import InstallationPlan, Installer, Wanted
from fairlead.model.actions import object_ref
from fairlead.model.installation import Installation, Parts
from fairlead.wire.installation.components import installed_objects
from fairlead.wire.installation.inventory import parse_inventory
from fairlead.wire.quota.tree_definition import quota_tree_definition

SMALL = Installation(
    parts=Parts(console=False, cluster_exporter=False, gpu_sharing=False, node_agent=False)
)
NAMESPACES = [each for each in installed_objects(SMALL) if each["kind"] == "Namespace"]


def wanted(chosen: Installation = SMALL, version: str = "0.1.0") -> Wanted:
    return Wanted(version, "", tuple(installed_objects(chosen)), chosen.namespace)


def installer(cluster: MemoryTarget, lines: list[str] | None = None) -> Installer:
    time = Time()
    return Installer(cluster, str if lines is None else lines.append, time.now, time.sleep)


def install(cluster: MemoryTarget, what: Wanted, *, is_forced: bool = False) -> InstallationPlan:
    run = installer(cluster)
    plan = run.plan(what, is_forced=is_forced)
    run.carry_out(plan, is_forced=is_forced)
    return plan


# --- the definition of the quota tree -------------------------------------------------------------


@pytest.mark.parametrize("is_own", [True, False], ids=["its own", "another program's"])
def test_a_definition_that_an_earlier_installation_left_is_written_and_recorded(
    is_own: bool,
) -> None:
    cluster = MemoryTarget()
    definition = quota_tree_definition()
    if is_own:
        cluster.put(definition)
    else:
        cluster.keep(definition)
    cluster.writes.clear()
    install(cluster, wanted())
    found = cluster.inventory("fairlead-system")
    assert found is not None
    listed = object_ref(definition) in parse_inventory(found).objects
    assert listed is is_own
    assert (("put", object_ref(definition).title) in cluster.writes) is is_own


# --- force ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_forced", [True, False])
def test_fields_of_others_are_taken_over_from_the_namespaces_on(is_forced: bool) -> None:
    cluster = MemoryTarget()
    for each in NAMESPACES:
        cluster.keep(each)
    install(cluster, wanted(), is_forced=is_forced)
    first = [title for _, title in cluster.writes[: len(NAMESPACES)]]
    assert first == [object_ref(each).title for each in NAMESPACES]
    unforced = [each for each in cluster.unforced if each in first]
    assert unforced == ([] if is_forced else 2 * first)
