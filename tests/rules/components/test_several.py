"""Several components by one click: their order, and what the earlier ones bring to the checks of
the later ones (docs/spec/components.md#several-at-once).
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.rules.components.plans import HOME, definition, deployment, facts, obj, rows, wanted

from fairlead.errors import UserError
from fairlead.model.installed.component_facts import WantedComponent
from fairlead.model.installed.finding import State
from fairlead.model.operations.component import ComponentState
from fairlead.model.operations.operation import AfterStep, OperationKind
from fairlead.rules.components.catalogue import CATALOGUE, COMPONENTS
from fairlead.rules.components.preflight import preflight
from fairlead.rules.components.several import (
    MOST,
    after,
    facts_after,
    in_order_of_needs,
    shared_objects,
    with_deployed,
)

DEPLOY = OperationKind.DEPLOY


def in_order(*ids: str) -> list[str]:
    return [each.id for each in in_order_of_needs([COMPONENTS[id] for id in ids])]


def charted(id: str = "prometheus", *objects: Any, place: str = "monitoring") -> WantedComponent:
    return WantedComponent(
        component=COMPONENTS[id],
        do=DEPLOY,
        place=place,
        home=HOME,
        version="1.0.0",
        chart="oci://h/c",
        release=id,
        objects=objects,
    )


def check(found: Any, name: str) -> Any:
    return next(each for each in found if each.check == name)


def test_what_others_need_comes_first() -> None:
    assert in_order("prometheus-adapter", "fluid", "prometheus") == [
        *("prometheus", "prometheus-adapter", "fluid")
    ]
    assert in_order("console", "fluid", "cluster-exporter") == [
        *("cluster-exporter", "console", "fluid")
    ], "parts of the installation come before what is not one"
    assert in_order("gpu-sharing", "node-agent") == ["node-agent", "gpu-sharing"]


def test_the_whole_catalogue_has_an_order() -> None:
    found = in_order(*(each.id for each in CATALOGUE))
    assert len(found) == len(CATALOGUE) <= MOST
    for each in CATALOGUE:
        for need in each.depends:
            assert found.index(need.id) < found.index(each.id)


def test_a_component_that_is_named_twice_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        in_order("fluid", "prometheus", "fluid")
    assert caught.value.what == "`fluid` is named twice"


def test_the_first_satisfies_the_needs_of_the_second() -> None:
    alone = preflight(charted("prometheus-adapter"), facts(), rows())
    assert check(alone, "depends").state is State.FAIL
    found = preflight(
        charted("prometheus-adapter"), facts(), with_deployed(rows(), charted("prometheus"))
    )
    assert check(found, "depends").state is State.OK
    row = with_deployed(rows(), charted("prometheus"))["prometheus"]
    assert (row.state, row.version, row.namespace) == (
        *(ComponentState.READY, "1.0.0", "monitoring"),
    )


def test_the_first_brings_kinds_namespace_hosts_and_ports() -> None:
    kind = definition("prometheusrules.monitoring.coreos.com", "v1")
    kind["spec"]["names"]["kind"] = "PrometheusRule"
    ingress = obj("Ingress", "first", "monitoring", spec={"rules": [{"host": "a.example"}]})
    service = obj("Service", "first", "monitoring", spec={"ports": [{"nodePort": 30080}]})
    first = charted("prometheus", kind, ingress, service)
    second = charted(
        "fluid",
        obj("Ingress", "second", "monitoring", spec={"rules": [{"host": "a.example"}]}),
        obj("Service", "second", "monitoring", spec={"ports": [{"nodePort": 30080}]}),
    )
    read = facts(namespace=None, unserved=("PrometheusRule.monitoring.coreos.com",))
    assert check(preflight(second, read, rows()), "prometheus").state is State.FAIL
    seen = facts_after(read, "monitoring", [first])
    found = preflight(second, seen, rows())
    assert check(found, "prometheus").state is State.OK
    clash = check(found, "host-clash")
    assert clash.state is State.FAIL
    assert "`a.example`" in clash.sentence and "`30080`" in clash.sentence

    native = wanted(DEPLOY, deployment(), place="monitoring")
    assert check(preflight(native, read, rows()), "namespace").state is State.FAIL
    assert check(preflight(native, seen, rows()), "namespace").state is State.OK
    assert facts_after(read, "other", [first]).namespace is None


def test_one_object_cannot_be_of_two_components() -> None:
    first, second = (
        wanted(DEPLOY, deployment()),
        wanted(DEPLOY, deployment(), id="training-operator"),
    )
    (bad,) = shared_objects(second, [first])
    assert bad.state is State.FAIL
    assert "Deployment mpi/mpi-operator is of `mpi-operator`, too" in bad.sentence
    other = wanted(DEPLOY, deployment(name="other"), id="training-operator")
    (good,) = shared_objects(other, [first])
    assert good.state is State.OK
    assert shared_objects(other, []) == []
    space = obj("Namespace", "mpi", "")
    (good,) = shared_objects(wanted(DEPLOY, space), [wanted(DEPLOY, deployment(), space)])
    assert good.state is State.OK, "a namespace may be of both"


def test_the_step_names_what_it_waits_for() -> None:
    step = after("k3v9x0q2m7ab", "component/prometheus")
    assert step.title == "wait for prometheus: operation k3v9x0q2m7ab"
    assert step.work == AfterStep("k3v9x0q2m7ab", "component/prometheus")
