"""A pod as its node's exporter reads it: uid, labels, names of containers by the runtime's ids."""

from __future__ import annotations

import msgspec

from fairlead.model.devices.series_names import LocalPod
from fairlead.wire.kube.local_pod import WireLocalPod, parse_local_pod


def parsed(text: str) -> LocalPod:
    return parse_local_pod(msgspec.json.decode(text, type=WireLocalPod))


def test_containers_of_all_kinds_are_known_by_the_runtimes_id() -> None:
    statuses = (
        '"containerStatuses":[{"name":"main","containerID":"containerd://aa"},{"name":"waits","containerID":""},{"name":"new"}],'
        '"initContainerStatuses":[{"name":"side","containerID":"cri-o://bb","state":{}}],'
        '"ephemeralContainerStatuses":[{"name":"debug","containerID":"docker://cc"}]'
    )
    found = parsed(
        f'{{"metadata":{{"namespace":"ns","name":"p","uid":"u","labels":{{"a":"b"}}}},"status":{{{statuses}}}}}'
    )
    assert found == LocalPod(
        "ns", "p", "u", "u", {"a": "b"}, {"aa": "main", "bb": "side", "cc": "debug"}
    )


def test_a_static_pods_kubelet_knows_it_by_the_hash_of_its_mirror() -> None:
    found = parsed(
        '{"metadata":{"namespace":"kube-system","name":"p","uid":"u","annotations":{"kubernetes.io/config.hash":"h"}}}'
    )
    assert (found.uid, found.kubelet_uid, found.containers) == ("u", "h", {})


def test_what_is_missing_or_null_is_empty() -> None:
    assert parsed(
        '{"metadata":{"labels":null,"annotations":{"x":null}},"status":{"containerStatuses":null}}'
    ) == LocalPod("", "")
