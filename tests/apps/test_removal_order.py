"""`fairlead uninstall` over a cluster in memory: what it removes, in which order, and what it
refuses; tests/kube/test_removal.py has a real one.
"""

from __future__ import annotations

import pytest
from tests.apps.memory_target import MemoryTarget, Time, release_record

from fairlead.apps.installation.removal import Removal
from fairlead.errors import UserError
from fairlead.model.actions import object_ref
from fairlead.wire.quota.tree_definition import quota_tree_definition


def removal(cluster: MemoryTarget, lines: list[str] | None = None) -> Removal:
    time = Time()
    report = str if lines is None else lines.append
    return Removal(cluster, report, time.now, time.sleep)


# --- beside a Helm release ------------------------------------------------------------------------


@pytest.mark.parametrize("with_data", [True, False], ids=["with data", "without data"])
def test_what_an_earlier_installation_left_is_not_removed_under_a_helm_release(
    with_data: bool,
) -> None:
    cluster = MemoryTarget()
    cluster.put(quota_tree_definition())
    marked = {"name": "team", "labels": {"fairlead.io/quota": "enforced"}}
    cluster.keep({"apiVersion": "v1", "kind": "Namespace", "metadata": marked})
    cluster.keep(release_record())
    with pytest.raises(UserError) as refused:
        removal(cluster).plan(with_data=with_data)
    assert refused.value.what == "Helm has installed Fairlead here: release `gpus`"
    assert refused.value.hint == "`helm uninstall gpus` removes it"


def test_after_the_release_is_gone_the_definition_that_is_left_can_be_removed() -> None:
    cluster = MemoryTarget()
    cluster.put(quota_tree_definition())
    with pytest.raises(UserError, match=r"only CustomResourceDefinition .* is left"):
        removal(cluster).plan(with_data=False)
    plan = removal(cluster).plan(with_data=True)
    assert plan.targets == (object_ref(quota_tree_definition()),)
