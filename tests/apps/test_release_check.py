"""Before Helm brings a release to another version or other values, losses are refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apps.memory_target import MemoryTarget, release_record
from tests.cli.command import run_command

from fairlead import __version__
from fairlead.errors import UserError
from fairlead.model.actions import ObjectRef
from fairlead.model.snapshot import ClusterSnapshot

TREE: dict[str, Any] = {
    "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
    "kind": "ElasticQuotaTree",
    "metadata": {"name": "tree", "namespace": "kube-system"},
    "spec": {"root": {"name": "root", "colour": "blue"}},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "elasticquotatrees.scheduling.sigs.k8s.io"},
}
HELD_USER = {
    "apiVersion": "fairlead.io/v1",
    "kind": "User",
    "metadata": {"name": "bob", "namespace": "kube-ai", "finalizers": ["fairlead.io/user"]},
}


def released(**data: str) -> MemoryTarget:
    """A cluster with a release whose record has these values in place of the usual ones."""
    cluster, record = MemoryTarget(), release_record()
    record["data"] |= data
    cluster.keep(record)
    return cluster


def deployment(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "fairlead-system"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta}


def check(cluster: MemoryTarget, *settings: str) -> str:
    words = " ".join(("upgrade --helm-hook", *(f"--set={each}" for each in settings)))
    printed = run_command(words, ClusterSnapshot(), "fairlead", target=cluster)
    assert cluster.writes == [] and cluster.changes == []
    return printed.out


def test_a_cluster_without_a_release_has_nothing_to_compare() -> None:
    assert "no Helm release" in check(MemoryTarget())


@pytest.mark.parametrize("version", ["0.0.9", __version__, "9.9.9"])
def test_a_version_that_understands_what_is_there_may_follow(version: str) -> None:
    expected = f"version `{__version__}` may follow `{version}`\n"
    assert check(released(version=version, oldest=__version__)) == expected


def test_a_version_that_does_not_understand_what_is_there_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        check(released(version="9.9.9", oldest="9.0.0"))
    assert (__version__ in refused.value.what, "9.0.0" in refused.value.hint) == (True, True)


@pytest.mark.parametrize("definitions", ["true", "false"])
def test_fields_that_the_definition_of_the_release_would_drop_are_named(definitions: str) -> None:
    """Another program's definition may have them: a release without definitions changes none."""
    cluster = released(definitions=definitions)
    cluster.keep(DEFINITION)
    cluster.keep(TREE)
    if definitions == "false":
        assert check(cluster)
        return
    with pytest.raises(UserError) as refused:
        check(cluster)
    assert ".spec.root.colour" in refused.value.what


@pytest.mark.parametrize(
    ("part", "server", "setting"),
    [
        ("people", "fairlead-people-controller", "parts.people=false"),
        ("quota", "fairlead-quota-controller", "parts.quota=false"),
        ("scheduler", "fairlead-scheduler", "parts.gpuSharing=false"),
    ],
)
def test_a_part_for_which_something_waits_does_not_end(
    part: str, server: str, setting: str
) -> None:
    cluster = released()
    cluster.keep(HELD_USER)
    pod = ObjectRef("v1", "Pod", "waiting", "team")
    cluster.gated, cluster.unscheduled = [pod], [pod]
    assert check(cluster, setting), "the release has not had this part"
    cluster.keep(deployment(server))
    assert check(cluster), "it stays"
    with pytest.raises(UserError) as refused:
        check(cluster, setting)
    assert ("bob" if part == "people" else "team/waiting") in refused.value.what
