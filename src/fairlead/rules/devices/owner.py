"""Which container has a set of device ids.

Specification: docs/spec/gpu-sharing.md#allocation-of-the-right-container.

Two lists of the kubelet answer this, and each leaves something out. The list of pod resources names
pods without their uid and omits init containers that end; the checkpoint has uids without names and
keeps dead pods until their ids are assigned again. A pod that is created anew under its old name
has another uid: while the checkpoint can be read, what the caller knows of the old pod is not used
for the new one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from fairlead.model.devices.granted import DeviceRefusal, RefusalCode
from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.keys import ANNOTATION_MIRROR
from fairlead.model.pod import Pod


class IdsOwner(Struct, frozen=True, gc=False):
    """The pod, and those of its containers that have the ids, app containers and sidecars first.

    More than one: an init container that ends has the same ids as a container after it.
    """

    pod: Pod
    containers: tuple[str, ...]


def kubelet_uid(pod: Pod) -> str:
    """The uid by which the kubelet knows the pod: for a static pod it is not the uid of its mirror.

    >>> kubelet_uid(Pod("ns", "p", uid="a", annotations={ANNOTATION_MIRROR: "b"}))
    'b'
    """
    return pod.annotations.get(ANNOTATION_MIRROR) or pod.uid


class KnownPods:
    """The pods of a node, found by the names or uids in the kubelet's lists."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._by_uid: dict[str, Pod] = {}
        self._by_name: dict[tuple[str, str], Pod] = {}
        for pod in pods:
            self._by_uid[kubelet_uid(pod)] = pod
            name = pod.namespace, pod.name
            if name not in self._by_name or self._by_name[name].is_finished:
                self._by_name[name] = pod

    def holding(self, held: HeldDevices) -> Pod | None:
        """The pod that has these devices, if it is known."""
        return (
            self._by_uid.get(held.pod_uid)
            if held.pod_uid
            else self._by_name.get((held.namespace, held.pod))
        )


def find_owner(
    resource: str, device_ids: Collection[str], held: Iterable[HeldDevices], pods: Sequence[Pod]
) -> IdsOwner | DeviceRefusal:
    """The container that starts with exactly these ids.

    `held`: the list of pod resources and the checkpoint together. `pods`: those of this node. What
    is unknown now may be known a moment later, so none of these refusals is final.
    """
    wanted = set(device_ids)
    same = [
        each
        for each in held
        if each.resource == resource and len(each.ids) == len(wanted) and set(each.ids) == wanted
    ]
    if not same:
        return _not_yet(f"no container of this node has these {len(wanted)} devices of {resource}")
    uids, names = (
        {each.pod_uid for each in same if each.pod_uid},
        {(each.namespace, each.pod) for each in same if each.pod},
    )
    living = [pod for pod in pods if not pod.is_finished]
    found = [
        pod
        for pod in living
        if (kubelet_uid(pod) in uids if uids else (pod.namespace, pod.name) in names)
    ]
    if len(found) > 1:
        found = [pod for pod in found if pod.deleted_at is None] or found
    if not found:
        names_text = ", ".join(sorted("/".join(name) for name in names)) or (
            f"with uid {', '.join(sorted(uids))}"
        )
        return _not_yet(
            f"pod {names_text} has these devices and is not yet known to the node agent"
        )
    if len(found) > 1 or (names and (found[0].namespace, found[0].name) not in names):
        names_text = ", ".join(
            sorted({pod.key for pod in found} | {"/".join(name) for name in names})
        )
        return _not_yet(f"the kubelet names several pods for the same devices: {names_text}")
    pod = found[0]
    having = {each.container for each in same}
    last = {part.name for part in pod.init_containers if not part.restartable}
    parts = [part.name for part in (*pod.containers, *pod.init_containers) if part.name in having]
    if not parts:
        return _not_yet(f"pod {pod.key} has no container {', '.join(sorted(having))}")
    return IdsOwner(pod, tuple(sorted(parts, key=lambda name: name in last)))


def _not_yet(reason: str) -> DeviceRefusal:
    return DeviceRefusal(RefusalCode.UNAVAILABLE, reason)
