"""The requests of one command: how many, in which order, with which selectors
(docs/spec/arena-cli.md#requests); GPU values behind the service proxy.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.api_objects import node, pod
from tests.edge.queried_cluster import cluster
from tests.edge.scripted import Reply

from fairlead.edge.queries.cluster_query import ClusterQuery
from fairlead.edge.queries.gpu_query import page_readings, proxied_readings
from fairlead.rules.reports.node import report_nodes

NODES, PODS, MAPS, SERVICES = (
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/namespaces/kube-system/configmaps",
    "/api/v1/services",
)
GPU_NODE = node("gpu-1", "10.0.0.1", {"nvidia.com/gpu": "4"})
TOPOLOGY_NODE = node(
    "gpu-2", "10.0.0.2", {"aliyun.com/gpu": "2"}, labels={"ack.node.gpu.schedule": "topology"}
)
TOPOLOGY_MAP = {
    "metadata": {
        "name": "gpu-2-topology",
        "labels": {"ack.node.gpu.schedule": "topology", "nodename": "gpu-2"},
    },
    "data": {"devices": '{"0":"Healthy","1":"Healthy"}'},
}
NOT_FOUND = {
    "kind": "Status",
    "status": "Failure",
    "reason": "NotFound",
    "message": ('nodes "absent" not found'),
    "code": 404,
}
FORBIDDEN = {
    "kind": "Status",
    "status": "Failure",
    "reason": "Forbidden",
    "message": "configmaps is forbidden",
    "code": 403,
}


def page(*items: Any, token: str = "") -> Reply:
    return Reply({"metadata": {"resourceVersion": "1", "continue": token}, "items": list(items)})


def test_nodes_are_read_in_pages_before_pods_and_only_pods_that_hold_something() -> None:
    script = {
        NODES: [page(GPU_NODE, token="more"), page(TOPOLOGY_NODE)],
        PODS: [page(pod("p", "gpu-1", {"nvidia.com/gpu": "1"}))],
        MAPS: [page()],
    }
    with cluster(**script) as (server, api):
        snapshot = ClusterQuery(api).read_nodes()
    assert [each.name for each in snapshot.nodes] == ["gpu-1", "gpu-2"]
    assert [each.path for each in server.seen] == [NODES, NODES, PODS, MAPS]
    assert (server.seen[0].query["limit"], server.seen[1].query["continue"]) == ("500", "more")
    assert (
        server.seen[2].query["fieldSelector"]
        == "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="
    )


def test_named_nodes_are_got_by_name_and_absent_ones_are_left_out() -> None:
    script = {
        f"{NODES}/gpu-1": [Reply(GPU_NODE)],
        f"{NODES}/absent": [Reply(NOT_FOUND, 404)],
        PODS: [page()],
    }
    with cluster(**script) as (server, api):
        snapshot = ClusterQuery(api).read_nodes(["gpu-1", "absent"])
    assert [each.name for each in snapshot.nodes] == ["gpu-1"]
    assert [each.query["fieldSelector"] for each in server.requests_of(PODS)] == [
        "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName=gpu-1"
    ]


def test_gpus_that_an_operator_took_out_are_asked_for_when_wanted_and_a_node_shares_gpus() -> None:
    shared = node("gpu-3", "10.0.0.3", {"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"})
    maps = [
        {"metadata": {"name": "unhealthy-gpu-gpu-3"}, "data": {"gpus": "1,0"}},
        {"metadata": {"name": "unhealthy-gpu-gone"}, "data": {"gpus": "1"}},
        {"metadata": {"name": "kube-root-ca.crt"}, "data": {"gpus": "1"}},
    ]
    with cluster(**{NODES: [page(shared)], PODS: [page()], MAPS: [page(*maps)]}) as (server, api):
        snapshot = ClusterQuery(api).read_nodes(with_withheld=True)
        assert (snapshot.withheld, snapshot.sources["gpu-withheld"].state) == (
            {"gpu-3": (0, 1)},
            "ok",
        )
        assert ClusterQuery(api).read_nodes().sources["gpu-withheld"].state == "off"
    with cluster(**{NODES: [page(GPU_NODE)], PODS: [page()]}) as (server, api):
        assert ClusterQuery(api).read_nodes(with_withheld=True).withheld == {}
        assert server.requests_of(MAPS) == []
    with cluster(**{NODES: [page(shared)], PODS: [page()], MAPS: [Reply(FORBIDDEN, 403)]}) as (
        server,
        api,
    ):
        snapshot = ClusterQuery(api).read_nodes(with_withheld=True)
        assert (snapshot.withheld, snapshot.sources["gpu-withheld"].state) == ({}, "forbidden")


def test_more_than_five_names_cost_a_list_and_not_a_request_each() -> None:
    nodes = [node(f"gpu-{number}", "10.0.0.1", {"nvidia.com/gpu": "1"}) for number in range(8)]
    holding = [
        pod("a", "gpu-0", {"nvidia.com/gpu": "1"}),
        pod("b", "gpu-7", {"nvidia.com/gpu": "1"}),
    ]
    with cluster(**{NODES: [page(*nodes)], PODS: [page(*holding)]}) as (server, api):
        snapshot = ClusterQuery(api).read_nodes([f"gpu-{number}" for number in range(6)])
    assert [each.path for each in server.seen] == [NODES, PODS]
    assert (len(snapshot.nodes), [each.name for each in snapshot.pods]) == (6, ["a"])


def test_config_maps_are_asked_for_only_when_a_node_wants_one() -> None:
    with cluster(**{NODES: [page(GPU_NODE)], PODS: [page()]}) as (server, api):
        assert ClusterQuery(api).read_nodes().topologies == {}
        assert server.requests_of(MAPS) == []
    with cluster(**{NODES: [page(TOPOLOGY_NODE)], PODS: [page()], MAPS: [page(TOPOLOGY_MAP)]}) as (
        server,
        api,
    ):
        assert ClusterQuery(api).read_nodes().topologies["gpu-2"].health_by_index == {
            0: "Healthy",
            1: "Healthy",
        }
        assert (
            server.requests_of(MAPS)[0].query["labelSelector"] == "ack.node.gpu.schedule=topology"
        )


def test_a_label_without_its_config_map_makes_no_topology_node_but_a_forbidden_list_does() -> None:
    with cluster(**{NODES: [page(TOPOLOGY_NODE)], PODS: [page()], MAPS: [page()]}) as (_, api):
        snapshot = ClusterQuery(api).read_nodes()
    assert [each.mode for each in report_nodes(snapshot)] == ["none"]
    with cluster(
        **{NODES: [page(TOPOLOGY_NODE)], PODS: [page()], MAPS: [Reply(FORBIDDEN, 403)]}
    ) as (_, api):
        snapshot = ClusterQuery(api).read_nodes()
    assert [each.mode for each in report_nodes(snapshot)] == ["topology"]
    assert (
        snapshot.sources["gpu-topologies"].state,
        snapshot.sources["gpu-topologies"].message,
    ) == (
        "forbidden",
        "forbidden: configmaps is forbidden",
    )


def test_one_malformed_node_does_not_cost_the_others() -> None:
    broken = node("gpu-9", "10.0.0.9", {"nvidia.com/gpu": "many"})
    with cluster(**{NODES: [page(GPU_NODE, broken)], PODS: [page()]}) as (_, api):
        assert [each.name for each in ClusterQuery(api).read_nodes().nodes] == ["gpu-1"]


PROXY = "/api/v1/namespaces/monitoring/services/prometheus:9335/proxy/api/v1/query"
SERVICE = {"metadata": {"name": "prometheus", "namespace": "monitoring"}}


def answer(*samples: tuple[dict[str, str], str]) -> Reply:
    result = [{"metric": labels, "value": [1.0, value]} for labels, value in samples]
    return Reply({"status": "success", "data": {"resultType": "vector", "result": result}})


def test_gpu_values_come_from_the_clusters_prometheus_in_one_query() -> None:
    card = {"node_name": "gpu-1", "minor_number": "0", "uuid": "GPU-1", "allocate_mode": "none"}
    found = answer(
        ({**card, "__name__": "nvidia_gpu_duty_cycle"}, "71"),
        ({**card, "__name__": "nvidia_gpu_memory_used_bytes"}, "1048576"),
    )
    with cluster(
        **{NODES: [page(GPU_NODE)], PODS: [page()], SERVICES: [page(SERVICE)], PROXY: [found]}
    ) as (server, api):
        snapshot = ClusterQuery(api, lambda: proxied_readings(api)).read_nodes(with_readings=True)
    assert [(gpu.index, gpu.utilization_ratio, gpu.memory_used_mib) for gpu in snapshot.gpus] == [
        (0, 0.71, 1.0)
    ]
    assert (len(server.requests_of(PROXY)), server.requests_of(PROXY)[0].method) == (1, "POST")


def test_a_proxy_without_endpoints_names_the_value_to_set() -> None:
    status = {
        "kind": "Status",
        "message": ('no endpoints available for service "prometheus"'),
        "reason": "ServiceUnavailable",
        "code": 503,
    }
    with cluster(
        **{
            NODES: [page(GPU_NODE)],
            PODS: [page()],
            SERVICES: [page(SERVICE)],
            PROXY: [Reply(status, 503)],
        }
    ) as (_, api):
        snapshot = ClusterQuery(api, lambda: proxied_readings(api)).read_nodes(with_readings=True)
    assert snapshot.gpus == ()
    assert ('no endpoints available for service "prometheus"') in snapshot.sources[
        "gpu-telemetry"
    ].message
    assert "prometheus_address" in snapshot.sources["gpu-telemetry"].message


def test_one_behind_the_proxy_that_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The timeout is shorter than for an API server, whose lists may take a minute."""
    monkeypatch.setattr("fairlead.edge.queries.gpu_query.TIMEOUT_SECONDS", 0.2)
    with cluster(
        **{
            NODES: [page(GPU_NODE)],
            PODS: [page()],
            SERVICES: [page(SERVICE)],
            PROXY: [Reply(b"{}", delay=30)],
        }
    ) as (_, api):
        snapshot = ClusterQuery(api, lambda: proxied_readings(api)).read_nodes(with_readings=True)
    message = snapshot.sources["gpu-telemetry"].message
    assert message.startswith(
        "Prometheus behind `/api/v1/namespaces/monitoring/services/prometheus:9335/proxy`: "
    )
    assert "did not answer in time" in message


def test_without_a_prometheus_the_nodes_are_shown_all_the_same() -> None:
    with cluster(**{NODES: [page(GPU_NODE)], PODS: [page()], SERVICES: [page()]}) as (_, api):
        snapshot = ClusterQuery(api, lambda: proxied_readings(api)).read_nodes(with_readings=True)
    assert len(snapshot.nodes) == 1
    assert snapshot.sources["gpu-telemetry"].message.startswith(
        "no Prometheus Service is labelled kubernetes.io/service-name=prometheus-admin"
    )


def test_a_page_of_a_gpu_exporter_can_be_read_directly() -> None:
    text = (
        b'nvidia_gpu_duty_cycle{node_name="gpu-1",minor_number="3",uuid="GPU-3",'
        b'allocate_mode="none"} 5\n'
    )
    with cluster(**{"/metrics": [Reply(text)]}) as (server, _):
        assert [
            (gpu.node, gpu.index, gpu.utilization_ratio)
            for gpu in page_readings(server.url + "/metrics")
        ] == [("gpu-1", 3, 0.05)]


def test_objects_are_read_kind_after_kind_and_hold_no_environment() -> None:
    """Kinds that may not be read are reported; kinds that are not served, or only in another
    version, are not.
    """
    mpi = "/apis/kubeflow.org/{}/mpijobs"
    job = {
        "metadata": {"name": "j", "namespace": "a", "uid": "j"},
        "spec": {"slotsPerWorker": 1, "secret": "x"},
    }
    holding = pod("p", "gpu-1", {"nvidia.com/gpu": "1"})
    holding["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    script = {path: [page()] for path in EVERY_KIND} | {
        NODES: [page(GPU_NODE, token="more"), page(TOPOLOGY_NODE)],
        PODS: [page(holding)],
        "/apis/apps/v1/replicasets": [Reply(FORBIDDEN, 403)],
        mpi.format("v2beta1"): [Reply(NOT_FOUND, 404)],
        mpi.format("v1"): [page(job)],
        "/apis/kubeflow.org/v1/tfjobs": [Reply(NOT_FOUND, 404)],
        "/apis/batch/v1/cronjobs": [
            Reply({"kind": "Status", "message": "etcd is away", "code": 500}, 500)
        ],
    }
    with cluster(**script) as (server, api):
        objects, unread = ClusterQuery(api).read_objects()
    assert [(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in objects] == [
        ("v1", "Node", "gpu-1"),
        ("v1", "Node", "gpu-2"),
        ("kubeflow.org/v1", "MPIJob", "j"),
        ("v1", "Pod", "p"),
    ]
    assert objects[2]["spec"] == {"slotsPerWorker": 1}
    assert "hunter2" not in str(objects) and "PASSWORD" not in str(objects)
    assert [(source.name, source.state, source.message) for source in unread] == [
        ("replicasets.apps", "forbidden", "configmaps is forbidden"),
        ("cronjobs.batch", "failing", unread[-1].message),
    ]
    assert not [
        each.path for each in server.seen if "secrets" in each.path or "configmaps" in each.path
    ]


EVERY_KIND = (
    *(
        "/api/v1/namespaces",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/scheduling.sigs.k8s.io/v1beta1/elasticquotatrees",
    ),
    "/apis/policy/v1/poddisruptionbudgets",
    *(
        f"/apis/apps/v1/{plural}"
        for plural in ("deployments", "statefulsets", "daemonsets", "controllerrevisions")
    ),
    *("/apis/batch/v1/jobs", "/apis/batch/v1/cronjobs", "/apis/kubeflow.org/v1/pytorchjobs"),
)
