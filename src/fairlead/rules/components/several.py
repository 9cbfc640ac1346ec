"""Several components that are deployed by one click: their order, and what the earlier ones bring.

The checks of a later one are made as if the earlier ones were there.

Specification: docs/spec/components.md#several-at-once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from fairlead.errors import UserError
from fairlead.model.actions import object_ref
from fairlead.model.installed.component_facts import PlanFacts, WantedComponent
from fairlead.model.installed.facts import Unread
from fairlead.model.installed.finding import Finding, State
from fairlead.model.operations.component import Component, ComponentRow, ComponentState
from fairlead.model.operations.operation import AfterStep, OperationStep
from fairlead.rules.components.component_plan import DEFINITION
from fairlead.rules.components.pod_templates import ingress_hosts, node_ports
from fairlead.rules.installation.finding_lists import some

Rows = Mapping[str, ComponentRow]
MOST: Final = 14
"""Components of one click."""
_SHARED: Final = (DEFINITION, "Namespace")
"""Kinds of which several components may have the same object."""


def in_order_of_needs(components: Sequence[Component]) -> list[Component]:
    """What others need comes first; else parts of the installation, then the given order.

    Raises UserError for a component that is named twice, and for too many.

    >>> from fairlead.rules.components.catalogue import COMPONENTS as every
    >>> found = in_order_of_needs([every["prometheus-adapter"], every["prometheus"]])
    >>> [each.id for each in found]
    ['prometheus', 'prometheus-adapter']
    """
    named = {each.id: each for each in components}
    if len(named) < len(components):
        twice = next(each.id for each in components if components.count(each) > 1)
        raise UserError(f"`{twice}` is named twice", "name each component once")
    if len(components) > MOST:
        raise UserError(f"{len(components)} components are named", f"name at most {MOST}")
    found: dict[str, Component] = {}

    def add(each: Component) -> None:
        for need in each.depends:
            if need.id in named and need.id not in found:
                add(named[need.id])
        found.setdefault(each.id, each)

    for each in sorted(components, key=lambda each: not each.part):
        add(each)
    return list(found.values())


def with_deployed(rows: Rows, wanted: WantedComponent) -> dict[str, ComponentRow]:
    """The rows as they are when this component has been deployed."""
    id = wanted.component.id
    row = replace(rows[id], state=ComponentState.READY, namespace=wanted.place)
    version = wanted.version or row.version or row.available
    return {**rows, id: replace(row, version=version)}


def facts_after(facts: PlanFacts, place: str, earlier: Sequence[WantedComponent]) -> PlanFacts:
    """What was read, with what the earlier components bring: namespace, kinds, hosts, ports."""
    objects: list[Any] = [each for one in earlier for each in one.objects]
    defined = {
        f"{each['spec']['names']['kind']}.{each['spec']['group']}"
        for each in objects
        if each["kind"] == DEFINITION
    }
    made = {each["metadata"]["name"] for each in objects if each["kind"] == "Namespace"}
    made |= {each.place for each in earlier if each.chart}
    namespace = facts.namespace
    if namespace is None and place in made:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
    hosts, ports = facts.hosts, facts.node_ports
    if not isinstance(hosts, Unread):
        hosts = {**ingress_hosts(objects), **hosts}
    if not isinstance(ports, Unread):
        ports = {**node_ports(objects), **ports}
    return replace(
        facts,
        namespace=namespace,
        hosts=hosts,
        node_ports=ports,
        unserved=tuple(each for each in facts.unserved if each not in defined),
    )


def shared_objects(wanted: WantedComponent, earlier: Iterable[WantedComponent]) -> list[Finding]:
    """Whether an earlier component has one of its objects, too; [] if there is no earlier one."""
    owners = {
        object_ref(each).identity: one.component.id
        for one in earlier
        for each in one.objects
        if each["kind"] not in _SHARED
    }
    clashes = [
        f"{object_ref(each).title} is of `{owners[identity]}`, too"
        for each in wanted.objects
        if (identity := object_ref(each).identity) in owners
    ]
    if clashes:
        mend = "choose another namespace for one of them"
        return [Finding("together", State.FAIL, some(clashes, "; "), mend)]
    return [Finding("together", State.OK, "no other one has one of its objects")] if owners else []


def after(operation: str, subject: str) -> OperationStep:
    """The first step of an operation that follows another one."""
    id = subject.partition("/")[2] or subject
    return OperationStep(f"wait for {id}: operation {operation}", AfterStep(operation, subject))
