"""How components are shown (docs/spec/components.md#states)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.model.actions import ObjectRef
from fairlead.model.installation import Installation, Parts
from fairlead.model.installed.component_facts import (
    ComponentFacts,
    InstallationFact,
    ProgramWorkload,
    RunningOperation,
)
from fairlead.model.installed.facts import Unread
from fairlead.model.operations.component import ComponentGroup, ComponentInventory, ComponentRow
from fairlead.model.operations.component import ComponentState as State
from fairlead.model.operations.operation import HelmRelease
from fairlead.rules.components.catalogue import CATALOGUE, COMPONENTS
from fairlead.rules.components.state import component_row, component_rows
from fairlead.wire.installation.components import IS_IN, component_objects

FLUID = COMPONENTS["fluid"]
NONE = ComponentFacts(program="0.2.0", has_helm=True)


def workload(name: str, namespace: str = "fluid-system", **more: Any) -> ProgramWorkload:
    kind = "DaemonSet" if name.startswith("csi") else "Deployment"
    return ProgramWorkload(kind, namespace, name, ready=more.pop("ready", 1), **more)


READY = tuple(workload(each.name) for each in FLUID.workloads)


def release(status: str = "deployed", **more: Any) -> HelmRelease:
    return HelmRelease(
        *("fluid", more.pop("namespace", "fluid-system"), status, 1, "fluid"),
        more.pop("version", "1.0.8"),
        is_own=more.pop("is_own", True),
    )


def row(facts: ComponentFacts, id: str = "fluid") -> ComponentRow:
    return component_row(COMPONENTS[id], facts)


def test_every_component_has_a_row_in_the_order_of_the_groups() -> None:
    rows = component_rows(NONE)
    assert [each.id for each in rows] == [each.id for each in CATALOGUE]
    order = list(ComponentGroup)
    assert [order.index(each.group) for each in rows] == sorted(
        order.index(each.group) for each in rows
    )
    assert max(Counter(each.id for each in rows).values()) == 1


def test_in_an_empty_cluster_only_the_command_line_is_there() -> None:
    states = {each.id: each.state for each in component_rows(NONE)}
    assert states.pop("cli") == State.READY
    assert set(states.values()) == {State.NOT_INSTALLED}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("deployed", State.READY),
        ("failed", State.FAILED),
        ("pending-install", State.INSTALLING),
        ("pending-upgrade", State.UPGRADING),
        ("pending-rollback", State.UPGRADING),
        ("uninstalling", State.REMOVING),
    ],
)
def test_a_release_of_fairlead(status: str, expected: State) -> None:
    found = row(replace(NONE, releases=(release(status),), workloads=READY))
    assert (found.state, found.managed_by, found.release) == (expected, "helm", "fluid")


def test_a_release_with_a_pod_that_is_not_ready_is_degraded() -> None:
    workloads = (replace(READY[0], ready=0), *READY[1:])
    found = row(replace(NONE, releases=(release(),), workloads=workloads))
    assert found.state == State.DEGRADED
    assert found.message == "Deployment fluid-system/dataset-controller: 0 of 1 ready"


def test_a_release_without_its_workloads_is_degraded() -> None:
    found = row(replace(NONE, releases=(release(),), workloads=READY[1:]))
    assert found.state == State.DEGRADED
    assert found.message == "Deployment fluid-system/dataset-controller does not exist"


def test_a_release_of_another_program_is_foreign_and_never_upgraded() -> None:
    other = release(is_own=False, namespace="other", version="0.9.0")
    found = row(replace(NONE, releases=(other,), workloads=READY))
    assert (found.state, found.managed_by, found.namespace) == (State.FOREIGN, "helm", "other")
    assert not found.can_upgrade


def test_without_helm_a_release_is_seen_and_its_state_is_unknown() -> None:
    by_helm = tuple(replace(each, release="data", version="1.0.7") for each in READY)
    found = row(replace(NONE, has_helm=False, workloads=by_helm))
    assert (found.state, found.managed_by, found.version) == (None, "helm", "1.0.7")
    assert found.message == (
        "the Helm release `fluid-system/data`; there is no program `helm` here to read releases"
    )
    found = row(replace(NONE, has_helm=False))
    assert found.state == State.NOT_INSTALLED
    assert found.message == "there is no program `helm` here to read releases"


def test_a_foreign_copy_is_known_by_its_workloads() -> None:
    by_helm = tuple(replace(each, release="data") for each in READY)
    found = row(replace(NONE, workloads=by_helm))
    assert (found.state, found.managed_by) == (State.FOREIGN, "helm")
    found = row(replace(NONE, has_helm=False, workloads=READY))
    assert (found.state, found.managed_by) == (State.FOREIGN, "other")


def test_a_foreign_copy_under_another_name_is_known_by_its_image() -> None:
    image = "host:5000/mirror/dataset-controller:v1.0.8@sha256:00"
    found = row(replace(NONE, workloads=(workload("renamed", images=(image,)),)))
    assert found.state == State.FOREIGN
    image = "host:5000/mirror/other-dataset-controller:v1"
    assert row(replace(NONE, workloads=(workload("x", images=(image,)),))).state == (
        State.NOT_INSTALLED
    )


@pytest.mark.parametrize(
    ("version", "can_upgrade"),
    [("1.0.7", True), ("1.0.8", False), ("1.0.10", False), ("1.0.8-rc.1", True), ("x", False)],
)
def test_an_upgrade_is_offered_only_to_a_newer_version(version: str, can_upgrade: bool) -> None:
    facts = replace(NONE, releases=(release(version=version),), workloads=READY)
    assert row(facts).can_upgrade is can_upgrade


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("deploy", State.INSTALLING), ("upgrade", State.UPGRADING), ("remove", State.REMOVING)],
)
def test_an_operation_that_runs_is_shown(kind: str, expected: State) -> None:
    found = row(replace(NONE, running={"fluid": RunningOperation("abc", kind)}))
    assert (found.state, found.operation) == (expected, "abc")


@pytest.mark.parametrize("source", ["workloads", "releases", "inventories"])
def test_what_cannot_be_read_is_unknown_and_not_absent(source: str) -> None:
    found = row(replace(NONE, **{source: Unread("no right")}))
    assert (found.state, found.message, found.can_upgrade) == (None, "no right", False)


def inventory(state: str = "complete") -> ComponentInventory:
    return ComponentInventory(
        id="mpi-operator",
        version="0.6.0",
        state=state,
        namespace="fairlead-system",
        place="mpi",
        objects=(ObjectRef("apps/v1", "Deployment", "renamed", "mpi"),),
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("complete", State.READY),
        ("writing", State.INSTALLING),
        ("removing", State.REMOVING),
    ],
)
def test_what_fairlead_wrote_natively(state: str, expected: State) -> None:
    facts = replace(NONE, inventories=(inventory(state),), workloads=(workload("renamed", "mpi"),))
    found = row(facts, "mpi-operator")
    assert (found.state, found.managed_by, found.namespace) == (expected, "native", "mpi")


def installed(**more: Any) -> InstallationFact:
    objects = [
        each
        for name in ("console", "quota-controller", "admission-webhook", "gpu-exporter")
        for each in component_objects(name, Installation())
        if each["kind"] in ("Deployment", "DaemonSet")
    ]
    refs = tuple(
        ObjectRef("apps/v1", each["kind"], each["metadata"]["name"], each["metadata"]["namespace"])
        for each in objects
    )
    version = more.pop("version", "0.1.0")
    return InstallationFact(version, more.pop("parts", Parts()), "fairlead-system", refs, **more)


def own(name: str, kind: str = "Deployment", namespace: str = "fairlead-system") -> ProgramWorkload:
    return ProgramWorkload(kind, namespace, name, ready=1)


def test_a_part_of_the_installation() -> None:
    facts = replace(NONE, installation=installed(), workloads=(own("fairlead-console"),))
    found = row(facts, "console")
    assert (found.state, found.version, found.available, found.can_upgrade) == (
        *(State.READY, "0.1.0", "0.2.0"),
        True,
    )
    exporter = own("fairlead-gpu-exporter", "DaemonSet", "fairlead-nodes")
    found = row(replace(facts, workloads=(exporter,)), "gpu-exporter")
    assert (found.state, found.namespace) == (State.READY, "fairlead-nodes")


def test_a_part_that_was_not_chosen_is_not_installed() -> None:
    facts = replace(NONE, installation=installed(parts=Parts(quota=False)))
    assert row(facts, "quota").state == State.NOT_INSTALLED


def test_a_part_that_lacks_one_of_its_workloads_is_degraded() -> None:
    facts = replace(NONE, installation=installed(), workloads=(own("fairlead-quota-controller"),))
    found = row(facts, "quota")
    assert found.state == State.DEGRADED
    assert "fairlead-admission-webhook does not exist" in found.message


def test_an_installation_that_is_interrupted_or_cannot_be_read() -> None:
    facts = replace(NONE, installation=installed(is_complete=False))
    assert row(facts, "console").state == State.INSTALLING
    newest = replace(facts, installation=installed(is_complete=False, version="0.2.0"))
    assert row(newest, "console").can_upgrade, "it finishes what was interrupted"
    at_work = replace(newest, running={"console": RunningOperation("op1", "upgrade")})
    assert not row(at_work, "console").can_upgrade
    assert row(replace(NONE, installation=Unread("no")), "console").state is None


def test_the_workloads_of_fairlead_s_own_parts_exist_in_an_installation() -> None:
    """The catalogue names what `wire/installation` makes, in one of its two schedulers."""
    made = {
        (each["kind"], each["metadata"]["name"])
        for scheduler in ("own", "control-plane")
        for name in IS_IN
        for each in component_objects(name, Installation(scheduler=scheduler))  # type: ignore[arg-type]
    }
    named = {(ref.kind, ref.name) for each in CATALOGUE if each.part for ref in each.workloads}
    assert named <= made
    parts = {each.part for each in CATALOGUE if each.part}
    assert parts == set(Parts.__struct_fields__) - {"gpu_exporter_rights"}


def test_needs_and_conflicts_name_components() -> None:
    named = {need.id for each in CATALOGUE for need in each.depends}
    named |= {id for each in CATALOGUE for id in each.conflicts}
    assert named <= set(COMPONENTS)
