"""The object store: what a write does to an object, its version and its generation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sim.objects import StillClock, config_map, deployment, job, namespace, pod

from fairlead_sim.objects.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JOBS,
    MPI_JOBS,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
)
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster


@pytest.fixture
def cluster() -> StoredCluster:
    return StoredCluster(StillClock())


def refused(reason: str) -> Any:
    """Expect an ApiStatus of this reason."""
    return pytest.raises(ApiStatus, match=f"^{reason} ")


def test_a_created_object_gets_uid_time_and_version(cluster: StoredCluster) -> None:
    made = cluster.create(pod())
    assert made["metadata"]["creationTimestamp"] == "2026-01-05T08:00:00Z"
    assert made["metadata"]["resourceVersion"] == str(cluster.resource_version)
    assert made["metadata"]["generation"] == 1
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert cluster.get(PODS, "default", "a") is made


def test_every_write_raises_the_version_by_one(cluster: StoredCluster) -> None:
    before = cluster.resource_version
    made = cluster.create(config_map())
    cluster.update({**made, "data": {"a": "b"}})
    cluster.delete(CONFIG_MAPS, "default", "a")
    assert cluster.resource_version == before + 3


def test_a_write_that_changes_nothing_is_no_write(cluster: StoredCluster) -> None:
    made = cluster.create(deployment())
    before = cluster.resource_version
    assert cluster.update(json.loads(json.dumps(made))) is made
    assert cluster.mutate(DEPLOYMENTS, "default", "web", dict) is made
    assert cluster.resource_version == before


def test_what_a_reader_holds_never_changes(cluster: StoredCluster) -> None:
    made = cluster.create(config_map(data={"a": "1"}))
    kept = json.dumps(made)
    cluster.merge_patch(
        CONFIG_MAPS, "default", "a", {"data": {"a": "2"}, "metadata": {"labels": {"x": "y"}}}
    )
    assert json.dumps(made) == kept


def test_the_writers_dict_is_not_taken_over(cluster: StoredCluster) -> None:
    given = config_map()
    cluster.create(given)
    assert given == config_map()


def test_a_second_object_of_the_name_already_exists(cluster: StoredCluster) -> None:
    cluster.create(deployment())
    with refused("AlreadyExists") as caught:
        cluster.create(deployment())
    assert caught.value.message == 'deployments.apps "web" already exists'


def test_a_stale_version_is_a_conflict(cluster: StoredCluster) -> None:
    made = cluster.create(config_map())
    cluster.update({**made, "data": {"a": "1"}})
    with refused("Conflict") as caught:
        cluster.update({**made, "data": {"a": "2"}})
    assert caught.value.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_an_update_without_a_version_wins(cluster: StoredCluster) -> None:
    cluster.create(config_map())
    assert cluster.update(config_map(data={"a": "1"}))["data"] == {"a": "1"}


def test_what_is_absent_cannot_be_updated(cluster: StoredCluster) -> None:
    with refused("NotFound") as caught:
        cluster.update(pod("absent"))
    assert caught.value.message == 'pods "absent" not found'


def test_system_metadata_is_not_the_writers(cluster: StoredCluster) -> None:
    made = cluster.create(config_map(uid="mine", creationTimestamp="1999-01-01T00:00:00Z"))
    assert made["metadata"]["uid"] != "mine"
    changed = cluster.update(
        {
            **made,
            "data": {"a": "1"},
            "metadata": {**made["metadata"], "creationTimestamp": "1999-01-01T00:00:00Z"},
        }
    )
    assert changed["metadata"]["creationTimestamp"] == "2026-01-05T08:00:00Z"


def test_a_version_may_not_be_set_at_creation(cluster: StoredCluster) -> None:
    with pytest.raises(
        ApiStatus, match="resourceVersion should not be set on objects to be created"
    ):
        cluster.create(config_map(resourceVersion="5"))


def test_a_namespace_must_exist(cluster: StoredCluster) -> None:
    with refused("NotFound") as caught:
        cluster.create(pod(namespace="nowhere"))
    assert caught.value.message == 'namespaces "nowhere" not found'
    cluster.create(namespace("nowhere"))
    cluster.create(pod(namespace="nowhere"))


def test_cluster_wide_objects_lose_their_namespace(cluster: StoredCluster) -> None:
    made = cluster.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "default"}}
    )
    assert "namespace" not in made["metadata"]
    assert cluster.get(NODES, "anything", "n") is made


def test_generated_names_are_new_and_lawful(cluster: StoredCluster) -> None:
    body = pod()
    names = {
        cluster.create({**body, "metadata": {"generateName": "train-", "namespace": "default"}})[
            "metadata"
        ]["name"]
        for _ in range(50)
    }
    assert len(names) == 50
    assert all(name.startswith("train-") and len(name) == len("train-") + 5 for name in names)


def test_a_spec_change_is_a_new_generation_and_a_status_change_is_not(
    cluster: StoredCluster,
) -> None:
    made = cluster.create(deployment())
    changed = cluster.merge_patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 3}})
    assert changed["metadata"]["generation"] == made["metadata"]["generation"] + 1
    reported = cluster.merge_patch(
        DEPLOYMENTS, "default", "web", {"status": {"readyReplicas": 3}}, subresource="status"
    )
    assert reported["metadata"]["generation"] == changed["metadata"]["generation"]
    assert reported["status"]["readyReplicas"] == 3


def test_spec_and_status_are_written_by_different_doors(cluster: StoredCluster) -> None:
    made = cluster.create(deployment())
    cluster.update({**made, "status": {"replicas": 7}})
    assert cluster.get(DEPLOYMENTS, "default", "web") is made
    reported = cluster.update_status({**made, "spec": {"replicas": 9}, "status": {"replicas": 7}})
    assert reported["spec"]["replicas"] == 1
    assert reported["status"] == {"replicas": 7}


def test_a_new_object_starts_without_the_writers_status_but_a_node_brings_its_own(
    cluster: StoredCluster,
) -> None:
    assert cluster.create({**deployment(), "status": {"replicas": 7}})["status"] == {}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "4"}},
    }
    assert cluster.create(node)["status"] == {"capacity": {"cpu": "4"}}
    custom = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "m"},
        "spec": {},
        "status": {"x": 1},
    }
    assert "status" not in cluster.create(custom)


def test_a_load_keeps_everything(cluster: StoredCluster) -> None:
    saved = {
        **pod(uid="u-1", creationTimestamp="2025-01-01T00:00:00Z"),
        "status": {"phase": "Running"},
    }
    loaded = cluster.load(saved)
    assert (loaded["metadata"]["uid"], loaded["metadata"]["creationTimestamp"]) == (
        "u-1",
        "2025-01-01T00:00:00Z",
    )
    assert loaded["status"] == {"phase": "Running"}


def test_an_unknown_kind_is_refused(cluster: StoredCluster) -> None:
    with refused("BadRequest") as caught:
        cluster.create({"apiVersion": "v9", "kind": "Dragon", "metadata": {"name": "d"}})
    assert caught.value.message == 'no kind "Dragon" is registered for version "v9"'


def test_lists_are_sorted_by_namespace_and_name(cluster: StoredCluster) -> None:
    cluster.create(namespace("b"))
    for name, space in (("z", "default"), ("a", "default"), ("m", "b")):
        cluster.create(pod(name, space))
    assert [found["metadata"]["name"] for found in cluster.list(PODS)] == ["m", "a", "z"]
    cluster.delete(PODS, "default", "a")
    cluster.create(pod("k"))
    assert [found["metadata"]["name"] for found in cluster.list(PODS, "default")] == ["k", "z"]
    assert cluster.list(PODS, "nowhere") == []


def test_a_rehearsal_checks_and_answers_but_changes_nothing(cluster: StoredCluster) -> None:
    cluster.create(pod("a"))
    before = (cluster.resource_version, cluster.names.counter, cluster.list(PODS))
    stage = cluster.rehearsal()
    assert stage.create(pod("b"))["metadata"]["uid"]
    assert stage.merge_patch(PODS, "default", "a", {"metadata": {"labels": {"x": "y"}}})[
        "metadata"
    ]["labels"] == {"x": "y"}
    stage.delete(PODS, "default", "a")
    stage.delete(NAMESPACES, None, "kube-node-lease")
    with refused("AlreadyExists"):
        stage.create(pod("a"))
    assert (cluster.resource_version, cluster.names.counter, cluster.list(PODS)) == before


def test_jobs_select_their_pods_by_their_own_uid(cluster: StoredCluster) -> None:
    made = cluster.create(job())
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"]["job-name"] == "a"
    assert (
        made["spec"]["completions"],
        made["spec"]["parallelism"],
        made["spec"]["backoffLimit"],
    ) == (1, 1, 6)
    assert (
        cluster.merge_patch(JOBS, "default", "a", {"metadata": {"labels": {"x": "y"}}})["spec"]
        == made["spec"]
    )


def test_services_get_different_addresses(cluster: StoredCluster) -> None:
    def service(name: str, **spec: Any) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}], **spec},
        }

    addresses = [cluster.create(service(name))["spec"]["clusterIP"] for name in ("a", "b")]
    assert len(set(addresses)) == 2
    assert cluster.create(service("c", clusterIP="None"))["spec"]["clusterIPs"] == ["None"]
    assert cluster.list(SERVICES)[0]["spec"]["ports"] == [
        {"port": 80, "protocol": "TCP", "targetPort": 80}
    ]


_HISTORY = """
from fairlead_sim.store.cluster import StoredCluster
from tests.sim.objects import StillClock, job, pod
import hashlib, json
cluster = StoredCluster(StillClock(), seed=7)
for name in "cab":
    made = cluster.create(job(name, labels={"z": "1", "a": "2"}))
    cluster.create(pod(generateName="x-", name=""))
text = json.dumps([cluster.list(ref) for ref in cluster.kinds()])
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_equal_seeds_give_byte_equal_histories_whatever_the_hash_seed() -> None:
    def history(hash_seed: str) -> str:
        environment = {
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path]),
        }
        return subprocess.run(
            [sys.executable, "-c", _HISTORY],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert history("1") == history("2") != ""
    assert (
        StoredCluster(StillClock(), seed=1).create(pod())["metadata"]["uid"]
        != StoredCluster(StillClock(), seed=2).create(pod())["metadata"]["uid"]
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            pod("A_b"),
            (
                'Pod "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 '
                "subdomain must consist of"
            ),
        ),
        (
            pod(labels={"-x": "y"}),
            (
                'Pod "a" is invalid: metadata.labels: Invalid value: "-x": name part must '
                "consist of "
                "alphanumeric"
            ),
        ),
        (
            pod(labels={"x": "a b"}),
            (
                'Pod "a" is invalid: metadata.labels: Invalid value: "a b": a valid label '
                "must be an "
                "empty string or"
            ),
        ),
        ({**pod(), "spec": {}}, 'Pod "a" is invalid: spec.containers: Required value'),
        (
            {**pod(), "spec": {"containers": [{"name": "x"}]}},
            ('Pod "a" is invalid: spec.containers[0].image: Required value'),
        ),
        (
            {**pod(), "spec": {"containers": [{"name": "x", "image": "i"}] * 2}},
            'Pod "a" is invalid: spec.containers[1].name: Duplicate value: "x"',
        ),
        (
            {**pod(), "metadata": {"namespace": "default"}},
            'Pod "" is invalid: metadata.name: Required value: name or generateName is required',
        ),
        (
            {
                **deployment(),
                "spec": {**deployment()["spec"], "selector": {"matchLabels": {"app": "other"}}},
            },
            (
                'Deployment.apps "web" is invalid: spec.template.metadata.labels: Invalid value: '
                '{"app":"web"}: `selector` does not match'
            ),
        ),
    ],
)
def test_a_broken_object_is_invalid(
    cluster: StoredCluster, body: dict[str, Any], message: str
) -> None:
    with refused("Invalid") as caught:
        cluster.create(body)
    assert caught.value.code == 422
    assert caught.value.message.startswith(message)


def test_a_running_pods_command_cannot_change(cluster: StoredCluster) -> None:
    made = cluster.create(pod())
    with refused("Invalid") as caught:
        cluster.update({**made, "spec": {**made["spec"], "restartPolicy": "Never"}})
    assert "pod updates may not change fields other than" in caught.value.message
    image = [{**made["spec"]["containers"][0], "image": "train:2"}]
    assert (
        cluster.update({**made, "spec": {**made["spec"], "containers": image}})["spec"][
            "containers"
        ][0]["image"]
        == "train:2"
    )


def test_kinds_are_found_by_what_objects_contain(cluster: StoredCluster) -> None:
    assert cluster.served("kubeflow.org/v2beta1", "MPIJob") is MPI_JOBS
    assert cluster.served("kubeflow.org/v1", "MPIJob") is MPI_JOBS, (
        "an older view of the same objects"
    )
    assert cluster.served("kubeflow.org/v7", "MPIJob") is None
