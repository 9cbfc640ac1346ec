"""The checks before an operation on a component (docs/spec/components.md#preflight): each is
reported, and each can fail.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.components.plans import (
    definition,
    deployment,
    facts,
    inventory,
    new,
    obj,
    rows,
    there,
    wanted,
    written,
)

from fairlead.model.installation import Parts
from fairlead.model.installed.component_facts import (
    ComponentFacts,
    InstallationFact,
    LiveObject,
    ProgramWorkload,
    TriedObject,
)
from fairlead.model.installed.facts import Mismatch, ServerFact, Unread
from fairlead.model.installed.finding import Finding, State
from fairlead.model.operations.operation import HelmRelease, OperationKind
from fairlead.rules.components.preflight import failing, part_preflight, preflight

DEPLOY, REMOVE = OperationKind.DEPLOY, OperationKind.REMOVE
NONE = ComponentFacts(program="0.1.0", has_helm=True)
CHECKS = (
    *("api", "permissions", "config-complete", "helm", "crd-owner", "other-release", "depends"),
    *("conflicts", "namespace", "dry-run", "storage-class", "gpu-nodes", "host-clash"),
    *("prometheus", "second-plugin"),
)


def one(found: list[Finding], check: str) -> Finding:
    (finding,) = [each for each in found if each.check == check]
    return finding


def asked(*objects: Any, **more: Any) -> Any:
    return wanted(DEPLOY, *(objects or (deployment(),)), **more)


def check(name: str, *objects: Any, tried: Any = None, **more: Any) -> Finding:
    given = objects or (deployment(),)
    found = facts(*(tried or map(new, given)), **more)
    return one(preflight(asked(*given), found, rows()), name)


def test_all_checks_are_reported_and_are_ok_in_an_empty_cluster() -> None:
    found = preflight(asked(), facts(new(deployment())), rows())
    assert tuple(each.check for each in found) == CHECKS
    assert {each.state for each in found} == {State.OK}


def test_all_failing_checks_are_reported_together() -> None:
    broken = facts(
        TriedObject(deployment(), None, Mismatch("no")),
        denied=("Deployment in mpi",),
        namespace=None,
        server=ServerFact("v1.17.0", (1, 17), None),
    )
    found = failing(preflight(asked(version="new"), broken, rows()))
    assert [each.check for each in found] == [
        *("api", "permissions", "config-complete", "namespace", "dry-run")
    ]
    assert all(each.mend for each in found)


@pytest.mark.parametrize(
    ("numbers", "state"),
    [((1, 18), State.OK), ((1, 17), State.FAIL), (None, State.UNKNOWN)],
)
def test_the_api_servers_version(numbers: Any, state: State) -> None:
    assert check("api", server=ServerFact("v", numbers, None)).state is state


def test_what_cannot_be_read_is_unknown() -> None:
    assert check("permissions", denied=Unread("no right")).state is State.UNKNOWN
    assert check("namespace", namespace=Unread("no right")).state is State.UNKNOWN
    assert check("host-clash", hosts=Unread("no right")).state is State.UNKNOWN
    claim = obj("PersistentVolumeClaim", "data", spec={})
    assert check("storage-class", claim, storage_classes=Unread("no")).state is State.UNKNOWN
    tried = [TriedObject(deployment(), Unread("no"), Unread("no right"))]
    assert check("dry-run", tried=tried).state is State.UNKNOWN


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"has_source": False}, "the manifests of `mpi-operator` are not named"),
        ({"version": "new"}, "the version is `new`"),
        (
            {"values": {"db": {"password": "hunter2"}}, "chart": "c"},
            "the values have a secret in plain text: db.password",
        ),
    ],
)
def test_what_is_not_complete(more: dict[str, Any], sentence: str) -> None:
    found = preflight(asked(**more), facts(new(deployment())), rows())
    finding = one(found, "config-complete")
    assert (finding.state, finding.sentence) == (State.FAIL, sentence)
    assert "hunter2" not in str(found)


def fluid(values: Any, place: str = "fluid-system") -> list[Finding]:
    given = wanted(
        DEPLOY, deployment(), id="fluid", place=place, release="fluid", chart="c", values=values
    )
    return preflight(given, facts(new(deployment()), has_helm=True), rows())


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"dataset": {"replicas": "many"}}, "value `dataset.replicas` is `many`"),
        ({"dataset": {"replicas": -1}}, "value `dataset.replicas` is `-1`"),
        ({"dataset": {"replicas": True}}, "value `dataset.replicas` is `True`"),
        ({"csi": {"enabled": "no"}}, "value `csi.enabled` is `no`"),
        ({"imagePrefix": 7}, "value `imagePrefix` is `7`"),
    ],
)
def test_values_of_another_type_are_named(values: Any, sentence: str) -> None:
    finding = one(fluid(values), "config-complete")
    assert (finding.state, finding.sentence) == (State.FAIL, sentence)


def test_values_of_the_right_type_and_unknown_values_are_accepted() -> None:
    values = {"dataset": {"replicas": 2}, "csi": {"enabled": False}, "imagePrefix": "a", "x": [1]}
    assert not failing(fluid(values))


def test_a_component_that_works_in_one_namespace_only() -> None:
    finding = one(fluid({}, "elsewhere"), "namespace")
    assert (finding.state, finding.mend) == (
        State.FAIL,
        "leave the namespace out: it is `fluid-system`",
    )


def test_a_secret_with_content_in_the_manifests_is_refused() -> None:
    secret = obj("Secret", "keys", stringData={"key": "hunter2"})
    finding = check("config-complete", secret)
    assert finding.sentence == "the manifests have Secrets with content: Secret mpi/keys"
    assert check("config-complete", obj("Secret", "empty")).state is State.OK


def test_a_chart_needs_helm_and_the_command_is_shown() -> None:
    given = wanted(
        DEPLOY, deployment(), id="fluid", place="fluid-system", release="fluid", chart="oci://c"
    )
    finding = one(preflight(given, facts(new(deployment())), rows()), "helm")
    assert finding.state is State.FAIL
    assert "helm upgrade --install fluid oci://c --version 0.6.0 -n fluid-system" in finding.mend
    assert one(preflight(given, facts(has_helm=True), rows()), "helm").state is State.OK
    denied = facts(has_helm=True, helm_denied="policy `p` denied request")
    finding = one(preflight(given, denied, rows()), "helm")
    assert finding.state is State.FAIL and "policy `p` denied request" in finding.sentence


def test_without_helm_a_chart_that_could_not_be_read_is_not_called_empty() -> None:
    given = wanted(DEPLOY, id="prometheus", place="monitoring", release="prometheus", chart="c")
    assert one(preflight(given, facts(), rows()), "config-complete").state is State.OK
    read = one(preflight(given, facts(has_helm=True), rows()), "config-complete")
    assert (read.state, read.sentence) == (State.FAIL, "there are no objects in it")


def test_a_chart_that_is_not_named_needs_helm_which_creates_its_namespace() -> None:
    given = wanted(
        DEPLOY,
        id="prometheus",
        place="monitoring",
        release="prometheus",
        version="",
        has_source=False,
    )
    found = preflight(given, facts(namespace=None), rows())
    assert [each.check for each in found if each.state is State.FAIL] == ["config-complete", "helm"]
    assert one(found, "config-complete").mend == "name its address: `--chart ADDRESS`"
    assert one(found, "helm").mend.endswith(
        "run `helm upgrade --install prometheus CHART -n monitoring --create-namespace -f VALUES` "
        "where it is"
    )


def crd(found: Any, result: Any = None, *versions: str) -> Finding:
    manifest = definition("mpijobs.kubeflow.org", *versions)
    return check("crd-owner", manifest, tried=[TriedObject(manifest, found, result or found)])


def test_the_owner_of_a_definition() -> None:
    own = written(definition())
    assert crd(own).state is State.OK
    helms = written(definition())
    helms["metadata"]["annotations"] = {
        "meta.helm.sh/release-name": "other",
        "meta.helm.sh/release-namespace": "ns",
    }
    assert "belongs to the Helm release `ns/other`" in crd(helms).sentence
    assert crd(own, Mismatch("conflict with `kubectl`: .spec")).state is State.FAIL


def test_a_version_in_which_objects_are_stored_must_stay() -> None:
    stored = {**written(definition()), "status": {"storedVersions": ["v1", "v2beta1"]}}
    finding = crd(stored)
    assert finding.sentence == (
        "definition `mpijobs.kubeflow.org` has objects stored as v1, which the new one lacks"
    )
    assert crd(stored, None, "v1", "v2beta1").state is State.OK


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (written(deployment()), State.OK),
        (written(deployment(), manager="kubectl"), State.FAIL),
        (written(deployment(), set_id="forged"), State.FAIL),
    ],
)
def test_an_object_of_another_program_is_never_taken(found: Any, state: State) -> None:
    assert check("other-release", tried=[there(deployment(), found=found)]).state is state


def test_an_object_of_another_release_is_never_taken() -> None:
    given = wanted(DEPLOY, deployment(), id="fluid", place="f", release="fluid", chart="c")
    for name, space, state in (("fluid", "f", State.OK), ("fluid", "g", State.FAIL)):
        found = deployment()
        found["metadata"]["annotations"] = {
            "meta.helm.sh/release-name": name,
            "meta.helm.sh/release-namespace": space,
        }
        tried = facts(there(deployment(), found=found))
        assert one(preflight(given, tried, rows()), "other-release").state is state
    assert (
        one(preflight(given, facts(there(deployment())), rows()), "other-release").state
        is State.FAIL
    )


def test_a_foreign_component_is_never_changed() -> None:
    workload = ProgramWorkload("Deployment", "else", "mpi-operator", ready=1)
    foreign = rows(replace(NONE, workloads=(workload,)))
    found = preflight(asked(), facts(new(deployment())), foreign)
    assert one(found, "other-release").state is State.FAIL
    found = preflight(wanted(REMOVE), facts(), foreign)
    assert one(found, "other-release").state is State.FAIL


@pytest.mark.parametrize("do", [DEPLOY, OperationKind.UPGRADE, REMOVE])
def test_what_may_be_another_programs_is_not_changed(do: OperationKind) -> None:
    unknown = rows(replace(NONE, workloads=Unread("no right")))
    finding = one(preflight(wanted(do, deployment()), facts(), unknown), "other-release")
    assert (finding.state, finding.sentence) == (
        State.FAIL,
        "whose it is could not be read: no right",
    )


def adapter(**more: Any) -> Finding:
    given = wanted(DEPLOY, deployment(), id="prometheus-adapter", chart="c", release="p")
    return one(preflight(given, facts(), rows(replace(NONE, **more))), "depends")


def test_what_it_depends_on_must_be_there() -> None:
    assert adapter().state is State.FAIL
    foreign = ProgramWorkload(
        "StatefulSet", "m", "p", images=("quay.example/prometheus/prometheus:v3",), ready=1
    )
    assert adapter(workloads=(foreign,)).state is State.OK
    pending = HelmRelease("p", "m", "pending-install", 1, "kube-prometheus-stack", is_own=True)
    assert adapter(releases=(pending,)).state is State.WARN


def test_parts_of_the_installation_know_their_needs_and_dependants() -> None:
    console = wanted(DEPLOY, id="console")
    finding = one(part_preflight(console, rows()), "depends")
    assert (finding.state, finding.sentence) == (State.FAIL, "`cluster-exporter` is missing")
    assert finding.mend == "`fairlead component deploy cluster-exporter`"
    installed = InstallationFact("0.1.0", Parts(), "fairlead-system")
    there = rows(replace(NONE, installation=installed))
    assert one(part_preflight(console, there), "depends").state is State.OK
    exporter = wanted(REMOVE, id="cluster-exporter")
    finding = one(part_preflight(exporter, there), "dependants")
    assert (finding.state, finding.sentence) == (State.FAIL, "`console` needs it")


def test_the_namespace() -> None:
    ending = obj("Namespace", "mpi", "")
    ending["metadata"]["deletionTimestamp"] = "2026-11-29T00:00:00Z"
    assert check("namespace", namespace=ending).state is State.FAIL
    assert check("namespace", namespace=None).mend == "`kubectl create namespace mpi`"
    assert check("namespace", obj("Namespace", "mpi", ""), namespace=None).state is State.OK


def test_the_words_of_admission_are_in_the_dry_run() -> None:
    tried = [TriedObject(deployment(), None, Mismatch('admission webhook "x" denied: too big'))]
    finding = check("dry-run", tried=tried)
    assert finding.sentence == (
        'Deployment mpi/mpi-operator: admission webhook "x" denied: too big'
    )


@pytest.mark.parametrize(
    ("spec", "classes", "state"),
    [
        ({}, {"fast": True}, State.OK),
        ({}, {"fast": False}, State.FAIL),
        ({"storageClassName": "fast"}, {"fast": False}, State.OK),
        ({"storageClassName": "slow"}, {"fast": True}, State.FAIL),
        ({"volumeName": "own"}, {}, State.OK),
    ],
)
def test_volumes_need_a_class(spec: Any, classes: Any, state: State) -> None:
    claim = obj("PersistentVolumeClaim", "data", spec=spec)
    assert check("storage-class", claim, storage_classes=classes).state is state


def test_hosts_and_ports_that_others_have() -> None:
    ingress = obj("Ingress", "web", spec={"rules": [{"host": "gpu.example"}, {}]})
    taken = {"gpu.example": "Ingress other/web"}
    assert check("host-clash", ingress, hosts=taken).sentence == (
        "host `gpu.example` of Ingress mpi/web is taken by Ingress other/web"
    )
    assert check("host-clash", ingress, hosts={"x": "y"}).state is State.OK
    service = obj("Service", "web", spec={"ports": [{"nodePort": 30080}, {"port": 80}]})
    assert check("host-clash", service, node_ports={30080: "Service a/b"}).state is State.FAIL
    workload = deployment()
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"containerPort": 80, "hostPort": 9400}]
    taken = {(9400, "TCP"): "Pod a/exporter"}
    assert check("host-clash", workload, host_ports=taken).sentence == (
        "host port `9400/TCP` of Deployment mpi/mpi-operator is taken by Pod a/exporter"
    )
    assert check("host-clash", workload, host_ports={(9400, "UDP"): "x"}).state is State.OK
    assert check("host-clash", workload, host_ports=Unread("no")).state is State.UNKNOWN


def test_gpus_prometheus_and_device_plugins() -> None:
    holder = deployment()
    holder["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "limits": {"nvidia.com/gpu": 1}
    }
    assert check("gpu-nodes", holder).state is State.WARN
    lacking = ("ServiceMonitor.monitoring.coreos.com",)
    assert check("prometheus", unserved=lacking).state is State.FAIL
    plugin = deployment("nvcr.example/nvidia/k8s-device-plugin:v1")
    installed = InstallationFact("0.1.0", Parts(), "fairlead-system")
    beside = rows(replace(NONE, installation=installed))
    found = preflight(asked(plugin), facts(new(plugin)), beside)
    assert one(found, "second-plugin").state is State.FAIL
    assert check("second-plugin", plugin).state is State.OK


LIVE = LiveObject("mpijobs.kubeflow.org", "MPIJob team/train")


@pytest.mark.parametrize(
    ("live", "deletes", "states"),
    [
        ((), False, (State.OK, State.OK)),
        ((LIVE,), False, (State.WARN, State.OK)),
        ((LIVE,), True, (State.FAIL, State.OK)),
        ((replace(LIVE, finalizers=("x",)),), False, (State.WARN, State.FAIL)),
    ],
)
def test_a_removal_looks_at_objects_of_its_kinds(
    live: Any, deletes: bool, states: tuple[State, State]
) -> None:
    given = wanted(REMOVE, deletes_definitions=deletes)
    found = preflight(given, facts(live=live), rows())
    assert (one(found, "live-objects").state, one(found, "finalizers").state) == states


def test_a_removal_names_objects_that_others_took_over() -> None:
    taken = written(deployment(), manager="kubectl")
    found = preflight(wanted(REMOVE), facts(before=inventory(taken), members=(taken,)), rows())
    assert one(found, "membership").state is State.WARN
