"""`fairlead install` and `upgrade` as commands: which one is refused, and what its hint names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.apps.memory_target import MemoryTarget, release_record
from tests.cli.command import Printed, run_command

from fairlead import __version__
from fairlead.errors import UserError
from fairlead.model.installation import SYSTEM_NAMESPACE
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire.installation.inventory import (
    COMPLETE,
    WRITING,
    Inventory,
    parse_inventory,
    render_inventory,
)

DONE = Inventory(__version__, COMPLETE, "replicas: 3\n", ())


def fairlead(line: str, cluster: MemoryTarget) -> Printed:
    return run_command(line, ClusterSnapshot(), "fairlead", target=cluster)


def cluster_with(inventory: Inventory) -> MemoryTarget:
    cluster = MemoryTarget()
    cluster.keep(render_inventory(inventory))
    return cluster


@pytest.mark.parametrize("state", [COMPLETE, WRITING])
def test_install_changes_no_values_of_an_installation_or_of_an_interrupted_run(state: str) -> None:
    cluster = cluster_with(replace(DONE, state=state))
    with pytest.raises(UserError) as refused:
        fairlead("install --wait 0", cluster)
    assert refused.value.hint.startswith("`fairlead upgrade`")
    assert ("has not come to its end" in refused.value.what) is (state == WRITING)
    assert cluster.writes == []


def test_install_goes_on_where_a_run_with_the_same_values_was_interrupted() -> None:
    cluster = cluster_with(replace(DONE, state=WRITING, version="0.0.9"))
    assert fairlead("install --set replicas=3 --wait 0", cluster).status == 0
    found = cluster.inventory(SYSTEM_NAMESPACE)
    assert found is not None
    inventory = parse_inventory(found)
    assert (inventory.state, inventory.values) == (COMPLETE, "replicas: 3\n")


def test_upgrade_finishes_an_interrupted_run_with_its_values() -> None:
    cluster = cluster_with(replace(DONE, state=WRITING))
    assert fairlead("upgrade --wait 0", cluster).status == 0
    found = cluster.inventory(SYSTEM_NAMESPACE)
    assert found is not None and parse_inventory(found).values == "replicas: 3\n"


def test_upgrade_of_a_helm_release_names_the_command_of_helm() -> None:
    cluster = MemoryTarget()
    cluster.keep(release_record())
    with pytest.raises(UserError) as refused:
        fairlead("upgrade", cluster)
    assert refused.value.what == "Helm has installed Fairlead here: release `gpus`"
    assert refused.value.hint == "`helm upgrade gpus` changes it"
    with pytest.raises(UserError) as refused:
        fairlead("upgrade", MemoryTarget())
    assert refused.value.hint == "`fairlead install` makes one"


def test_upgrade_goes_back_to_this_version_only_with_the_flag() -> None:
    cluster = cluster_with(replace(DONE, version="99.0.0"))
    with pytest.raises(UserError) as refused:
        fairlead("upgrade --wait 0", cluster)
    assert refused.value.hint.endswith("`fairlead upgrade --allow-downgrade` goes back")
    assert cluster.writes == []
    assert fairlead("upgrade --allow-downgrade --wait 0", cluster).status == 0
    found = cluster.inventory(SYSTEM_NAMESPACE)
    assert found is not None and parse_inventory(found).version == __version__
