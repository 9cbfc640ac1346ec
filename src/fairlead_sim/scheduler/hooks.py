"""The calls of a cluster to an outside component: extender, admission, a node's agent.

Nothing is decided here. The simulation has none of Fairlead's rules; the creator of a world fills
the hooks, and a world without any runs, too: pods that need the extender then wait, as they do when
a real one is down.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fairlead.wire.names import LABEL_SHARED
from fairlead_sim.objects.asked_memory import MemoryHook
from fairlead_sim.store.admission import Admission
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.time.timers import Timers

Object = dict[str, Any]


class Unfit(NamedTuple):
    """Nodes that cannot take a pod, each with the reason to show: `failed` may later, `hopeless`
    not even if others were pushed aside.
    """

    failed: Mapping[str, str]
    hopeless: Mapping[str, str]


class HookVictims(NamedTuple):
    """Uids of pods to evict from a node, and how many disruption budgets that breaks."""

    uids: Sequence[str]
    violations: int


class SchedulerHook(Protocol):
    """The simulated scheduler's questions about some pods, verb by verb as over HTTP.

    kube-scheduler asks an extender in the same way.
    """

    def wants(self, pod: Object) -> bool:
        """Whether this pod is the extender's business at all."""
        ...

    def on_change(self, notify: Callable[[], None]) -> None:
        """Call `notify` when refused pods may have room without an event of a node or pod.

        A real extender touches such pods, and kube-scheduler tries them again.
        """
        ...

    def filter(self, pod: Object, nodes: Sequence[str]) -> Unfit: ...

    def prioritize(self, pod: Object, nodes: Sequence[str]) -> Mapping[str, int]:
        """A score of 0..10 per node; more is better."""
        ...

    def bind(self, pod: Object, node: str) -> str:
        """Bind the pod through the API; "" when that is done, else why not."""
        ...

    def preempt(self, pod: Object, victims: Mapping[str, HookVictims]) -> Mapping[str, HookVictims]:
        """The victims that would really help, by node; nodes where none would are left out."""
        ...


class Share(NamedTuple):
    """What a container is given of one shared card."""

    uuid: str
    mib: int


class NoShare(NamedTuple):
    """Why a node's agent refuses a container: a code of gRPC as Go spells it, and the sentence."""

    code: str
    reason: str


AgentHook = Callable[[Object, str, Collection[str]], Sequence[Share] | NoShare]
"""What the agent of a pod's node gives to one of its containers, by name; with the UUIDs of cards
that a container holds as a whole.
"""


EnvironmentHook = Callable[[Object, str], Mapping[str, str]]
"""The variables that the agent of a pod's node adds to one of its containers, by name, for its
parts of shared cards.
"""


def by_label_cgpu(labels: Mapping[str, str]) -> bool:
    return labels.get(LABEL_SHARED) == "true"


@dataclass(frozen=True, slots=True)
class Hooks:
    """`shares`: whether the labels of a node ask its agent to share the GPUs.

    `agent`: what containers are given of shared cards; None: what the pod's annotation grants.
    `memory`: what programs get of shared cards; None: their container's share.
    `environment`: what the agent adds to the environment of containers; None: nothing.
    `lives`: starts what else lives in the cluster's time, such as a controller.
    """

    extender: SchedulerHook | None = None
    admission: Admission | None = None
    shares: Callable[[Mapping[str, str]], bool] = by_label_cgpu
    lives: Callable[[Timers], object] | None = None
    agent: AgentHook | None = None
    memory: MemoryHook | None = None
    environment: EnvironmentHook | None = None


def no_hooks(cluster: StoredCluster, recorder: Recorder) -> Hooks:
    """A world without outside components."""
    return Hooks()
