"""The agent finds the right pod for device ids while the kubelet picks ids at random, pod names and
ids are reused, and the agent's view is late.

The simulated kubelet follows the device manager of the real one: init containers that end leave
their ids to the containers after them; ids of a finished pod are reused while its object still
exists; the list of pod resources has neither uids nor init containers that end; the checkpoint has
no names and keeps finished pods.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from msgspec import structs
from tests.rules.devices.cards import T4_MIB, T4_UNITS, t4, uuid

from fairlead.model.devices.gpu import Grant
from fairlead.model.devices.granted import ContainerGrant, DeviceRefusal, RefusalCode
from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.pod import Container, Pod, PodPhase
from fairlead.rules.devices.grant import granted
from fairlead.rules.devices.owner import find_owner

MEMORY = "aliyun.com/gpu-mem"
CARDS = [t4(0), t4(1)]
IDS = [f"{uuid(card)}-_-{number}" for card in range(2) for number in range(T4_UNITS)]
SIZES = st.sampled_from([1, 2, 2, 4])


def part(name: str, units: int, is_sidecar: bool = False) -> Container:
    return Container(name, limits={MEMORY: units}, restartable=is_sidecar)


class Kubelet:
    """Device ids by (pod uid, container). Ids of finished pods stay until another pod needs ids."""

    def __init__(self) -> None:
        self.given: dict[tuple[str, str], tuple[str, ...]] = {}
        self.pods: dict[str, Pod] = {}

    def admit(self, pod: Pod, shuffle: Any) -> bool:
        active = {uid for uid, each in self.pods.items() if not each.is_finished}
        self.given = {key: ids for key, ids in self.given.items() if key[0] in active}
        before = dict(self.given)
        reusable: list[str] = []
        for container in (*pod.init_containers, *pod.containers):
            count = container.limits[MEMORY]
            used = {each for ids in self.given.values() for each in ids}
            free = [
                *shuffle(sorted(reusable)),
                *shuffle([each for each in IDS if each not in used]),
            ]
            if len(free) < count:
                self.given = before
                return False
            taken = self.given[pod.uid, container.name] = tuple(sorted(free[:count]))
            reusable = [each for each in reusable if each not in taken]
            if container in pod.init_containers and not container.restartable:
                reusable += taken
        self.pods[pod.uid] = pod
        return True

    def pod_resources(self) -> list[HeldDevices]:
        return [
            HeldDevices(MEMORY, ids, name, pod.namespace, pod.name)
            for (uid, name), ids in self.given.items()
            if (pod := self.pods.get(uid))
            and not any(each.name == name and not each.restartable for each in pod.init_containers)
        ]

    def checkpoint(self) -> list[HeldDevices]:
        return [
            HeldDevices(MEMORY, ids, name, pod_uid=uid) for (uid, name), ids in self.given.items()
        ]


class WhoIsWho(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.kubelet, self.objects, self.seen = Kubelet(), dict[str, Pod](), dict[str, Pod]()
        self.count = 0

    @rule(data=st.data(), name=st.sampled_from("pq"), card=st.integers(0, 1), wished=st.booleans())
    def bind_and_admit(self, data: st.DataObject, name: str, card: int, wished: bool) -> None:
        """A new pod takes the place of the pod with this name. Its owner may request a lower limit
        for its first container.
        """
        for uid in [uid for uid, each in self.objects.items() if each.name == name]:
            self.kubelet.pods[uid] = structs.replace(
                self.objects.pop(uid), phase=PodPhase.SUCCEEDED
            )
        self.count += 1
        init = [
            part(f"i{place}", units)
            for place, units in enumerate(data.draw(st.lists(SIZES, max_size=2)))
        ]
        if data.draw(st.booleans()):
            init.insert(len(init) // 2, part("s", 2, is_sidecar=True))
        containers = [
            part(f"a{place}", units)
            for place, units in enumerate(data.draw(st.lists(SIZES, min_size=1, max_size=2)))
        ]
        grants = {}
        for each in (*init, *containers):
            units = each.limits[MEMORY]
            mib = T4_MIB * units // T4_UNITS - (7 if wished and each.name == "a0" else 0)
            grants[each.name] = (Grant(uuid(card), card, units, mib),)
        pod = Pod(
            "ns",
            name,
            uid=f"{name}{self.count}",
            node="n",
            init_containers=tuple(init),
            containers=tuple(containers),
            grants=grants,
        )
        if self.kubelet.admit(pod, lambda ids: data.draw(st.permutations(ids))):
            self.objects[pod.uid] = pod

    @rule(data=st.data(), how=st.sampled_from(["finished", "leaving", "gone"]))
    @precondition(lambda self: self.objects)
    def end(self, data: st.DataObject, how: str) -> None:
        uid = data.draw(st.sampled_from(sorted(self.objects)))
        pod = structs.replace(
            self.objects[uid],
            **({"deleted_at": 1.0} if how == "leaving" else {"phase": PodPhase.FAILED}),
        )
        self.objects[uid] = pod
        self.kubelet.pods[uid] = pod
        if how == "gone":
            del self.objects[uid]

    @rule()
    def look(self) -> None:
        self.seen = dict(self.objects)

    @rule(data=st.data(), lists=st.sampled_from(["both", "both", "checkpoint"]))
    @precondition(lambda self: self.kubelet.given)
    def start(self, data: st.DataObject, lists: str) -> None:
        uid, name = data.draw(st.sampled_from(sorted(self.kubelet.given)))
        pod, ids = self.kubelet.pods[uid], self.kubelet.given[uid, name]
        if pod.is_finished:
            return
        held = [
            *(self.kubelet.pod_resources() if lists == "both" else ()),
            *self.kubelet.checkpoint(),
        ]
        owner = find_owner(MEMORY, data.draw(st.permutations(ids)), held, list(self.seen.values()))
        if isinstance(owner, DeviceRefusal):
            assert owner.code == RefusalCode.UNAVAILABLE
            assert self.seen.get(uid) is None, "who is seen is found"
            return
        found = granted(ids, owner, CARDS)
        assert isinstance(found, ContainerGrant), found
        equals = {
            each
            for (other, each), taken in self.kubelet.given.items()
            if other == uid and taken == ids
        }
        assert (found.pod_uid, set(found.containers)) == (uid, equals)
        [own] = pod.grants[name]
        [card] = found.cards
        assert (card.uuid, card.units) == (own.uuid, own.units)
        assert card.memory_mib == min(pod.grants[each][0].memory_mib or 0 for each in equals)


@pytest.mark.parametrize("count", [12, pytest.param(400, marks=pytest.mark.long)])
def test_every_container_starts_on_the_card_of_its_own_placement(count: int) -> None:
    run_state_machine_as_test(
        WhoIsWho, settings=settings(max_examples=count, stateful_step_count=25, deadline=None)
    )
