"""Which container owns a set of device ids
(docs/spec/gpu-sharing.md#allocation-of-the-right-container), where the kubelet's two lists are
incomplete.
"""

from __future__ import annotations

from typing import Any

from fairlead.model.devices.granted import DeviceRefusal, RefusalCode
from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.pod import Container, Pod, PodPhase
from fairlead.rules.devices.owner import IdsOwner, KnownPods, find_owner

MEMORY = "aliyun.com/gpu-mem"
IDS = ("GPU-a-_-0", "GPU-a-_-1")


def pod(name: str = "p", uid: str = "u", **more: Any) -> Pod:
    return Pod(
        "ns",
        name,
        **{"uid": uid, "node": "n", "containers": (Container("app"), Container("other")), **more},
    )


def listed(
    name: str = "p", container: str = "app", ids: tuple[str, ...] = IDS, resource: str = MEMORY
) -> HeldDevices:
    """An entry of the kubelet's list of pod resources."""
    return HeldDevices(resource, ids, container, "ns", name)


def kept(uid: str = "u", container: str = "app", ids: tuple[str, ...] = IDS) -> HeldDevices:
    """An entry of the kubelet's checkpoint."""
    return HeldDevices(MEMORY, ids, container, pod_uid=uid)


def owned(*held: HeldDevices, pods: tuple[Pod, ...] = (pod(),)) -> tuple[str, ...]:
    found = find_owner(MEMORY, IDS[::-1], held, pods)
    assert isinstance(found, IdsOwner), found
    return (found.pod.uid, *found.containers)


def refused(*held: HeldDevices, pods: tuple[Pod, ...] = (pod(),)) -> str:
    found = find_owner(MEMORY, IDS, held, pods)
    assert isinstance(found, DeviceRefusal), found
    assert (found.code, found.is_final) == (RefusalCode.UNAVAILABLE, False), (
        "a later list may contain it"
    )
    return found.reason


def test_either_list_reports_the_owner() -> None:
    assert owned(listed()) == owned(kept()) == owned(listed(), kept()) == ("u", "app")


def test_only_exactly_these_ids_of_this_resource_count() -> None:
    assert "no container" in refused(
        listed(ids=IDS[:1]),
        listed(ids=(*IDS, "GPU-a-_-2")),
        listed(resource="aliyun.com/gpu-core.percentage"),
    )


def test_an_init_container_that_ends_is_in_the_checkpoint_alone() -> None:
    assert owned(kept(container="init"), pods=(pod(init_containers=(Container("init"),)),)) == (
        "u",
        "init",
    )


def test_of_an_init_and_an_app_container_with_the_same_ids_the_app_container_comes_first() -> None:
    both = pod(init_containers=(Container("init"), Container("side", restartable=True)))
    assert owned(kept(container="init"), kept(container="app"), listed(), pods=(both,)) == (
        "u",
        "app",
        "init",
    )
    assert owned(kept(container="init"), kept(container="side"), pods=(both,)) == (
        "u",
        "side",
        "init",
    )


def test_of_a_static_pod_the_kubelet_knows_another_uid_than_its_mirror_has() -> None:
    mirror = pod(uid="mirror", annotations={"kubernetes.io/config.mirror": "static"})
    assert owned(listed(), kept("static"), pods=(mirror,)) == ("mirror", "app")
    assert "not yet known" in refused(kept("mirror"), pods=(mirror,))


def test_a_pod_made_anew_under_its_name_is_not_taken_for_the_old_one() -> None:
    """The pod of a StatefulSet: the list of pod resources has only its name, and the watch still
    shows the previous pod of that name.
    """
    assert "not yet known" in refused(listed(), kept("new"), pods=(pod(uid="old", deleted_at=1.0),))
    assert owned(listed(), kept("new"), pods=(pod(uid="old", deleted_at=1.0), pod(uid="new"))) == (
        "new",
        "app",
    )


def test_a_pod_that_is_over_has_no_ids_any_more() -> None:
    over, leaving = (
        pod("old", "old", phase=PodPhase.SUCCEEDED),
        pod("going", "going", deleted_at=1.0),
    )
    assert owned(listed("old"), listed("going"), listed(), pods=(over, leaving, pod())) == (
        "u",
        "app",
    )
    assert "not yet known" in refused(listed("old"), pods=(over,))
    assert owned(listed("going"), pods=(leaving,)) == ("going", "app"), (
        "what is going may still start"
    )


def test_lists_that_contradict_each_other_name_no_pod() -> None:
    other = pod("q", "v")
    assert refused(listed(), listed("q"), pods=(pod(), other)) == (
        "the kubelet names several pods for the same devices: ns/p, ns/q"
    )
    assert "several pods" in refused(listed("q"), kept("u"), pods=(pod(), other))
    leaving = (pod(deleted_at=1.0), pod("q", "v", deleted_at=1.0))
    assert "several pods" in refused(listed(), listed("q"), pods=leaving)


def test_the_user_of_devices_is_found_by_what_the_list_reports() -> None:
    pods = (
        pod("a", "1"),
        pod("b", "2", annotations={"kubernetes.io/config.mirror": "3"}),
        Pod("other", "b", uid="4"),
    )
    assert [
        KnownPods(pods).holding(each)
        for each in (listed("b"), kept("1"), kept("3"), kept("2"), listed("c"))
    ] == [
        pods[1],
        pods[0],
        pods[1],
        None,
        None,
    ]


def test_a_container_that_the_pod_does_not_have_is_no_holder() -> None:
    assert refused(listed(container="x")) == "pod ns/p has no container x"
    assert refused(listed(), pods=()) == (
        "pod ns/p has these devices and is not yet known to the node agent"
    )
    assert "with uid u" in refused(kept(), pods=())
