"""What was read of a cluster about an installation of Fairlead, or before one.

Each fact that the API server refuses to show is `Unread`, with its sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.actions import Manifest, ObjectRef
from fairlead.model.installation import Installation
from fairlead.model.moment import Moment
from fairlead.model.node import Taint
from fairlead.model.node_choice import NodeChoice

SIMULATED_BUILD: Final = "+fairlead"
"""The end of the version that the API server of a simulated cluster reports. Containers of its pods
run no program.
"""


class Unread(Struct, frozen=True):
    """`why`: the API server's sentence. It names the right that lacks, if it is a right."""

    why: str


class ServerFact(Struct, frozen=True):
    """`numbers`: major and minor; None = its version has none. `ahead_seconds`: how far its clock
    is ahead of this machine's; None = its answer has no time.
    """

    version: str
    numbers: tuple[int, int] | None
    ahead_seconds: float | None

    @property
    def is_simulated(self) -> bool:
        """Whether containers of the cluster run no program, as on the laptop."""
        return self.version.endswith(SIMULATED_BUILD)


class InventoryFact(Struct, frozen=True):
    """`is_complete`: False = a run was interrupted, or is going on. `release`: the Helm release
    that was installed, "" = `fairlead install` did it.
    """

    version: str
    is_complete: bool
    release: str = ""


class Mismatch(Struct, frozen=True):
    """Why an object cannot be applied as it is wanted: fields of another program, or a fault."""

    why: str


class ObjectFact(Struct, frozen=True):
    """One object of the inventory.

    `found`: as it is; None = it does not exist. `result`: what applying it again would make of it;
    None = that was not tried.
    """

    ref: ObjectRef
    found: Manifest | Unread | None
    result: Manifest | Mismatch | Unread | None = None


class DefinitionFact(Struct, frozen=True):
    """A wanted CustomResourceDefinition outside the inventory, and the existing one of its name.

    `is_left`: an earlier `fairlead install` wrote it.
    """

    wanted: Manifest
    found: Manifest | Unread | None
    is_left: bool = False


class PodFact(Struct, frozen=True):
    """A pod in a namespace of the installation. `part`: its label `app.kubernetes.io/name`.

    `restarts`: of all containers. `restarted_at`: end of the newest container that ended.
    `trouble`: why it is not ready, in the words of its status.
    """

    namespace: str
    name: str
    part: str
    node: str = ""
    is_ready: bool = False
    restarts: int = 0
    restarted_at: Moment | None = None
    trouble: str = ""


class LeaseFact(Struct, frozen=True):
    """`holder` "" = no process holds it. `seconds`: how long it holds after `renewed_at`."""

    namespace: str
    name: str
    holder: str = ""
    renewed_at: Moment | None = None
    seconds: int = 0


class WorkloadFact(Struct, frozen=True):
    """A Deployment or DaemonSet of any namespace. `wanted`: replicas, or nodes that it selects."""

    kind: str
    namespace: str
    name: str
    images: tuple[str, ...]
    wanted: int
    choice: NodeChoice


class ExtenderFact(Struct, frozen=True):
    """A kube-scheduler's configuration in a ConfigMap, and the addresses of its extenders."""

    namespace: str
    name: str
    addresses: tuple[str, ...]


class NodeFact(Struct, frozen=True):
    """`runtime`: such as `containerd://2.1.4`. `gpus`: resources of GPUs in its capacity."""

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True
    runtime: str = ""
    kubelet: str = ""
    kernel: str = ""
    gpus: tuple[str, ...] = ()


class CertificateFact(Struct, frozen=True):
    """A certificate.

    `ends_at`: of the certificate that is valid longest; None = there is none, or none that can be
    read.
    """

    name: str
    ends_at: Moment | Unread | None


class SecretFact(Struct, frozen=True):
    """A Secret, without its content.

    `type`: such as `kubernetes.io/dockerconfigjson`; None = it does not exist.
    """

    namespace: str
    name: str
    type: str | Unread | None


class InstallationFacts(Struct, frozen=True):
    """`now`: this machine's time before the facts were read; they are at most `read_seconds` newer.
    `server`: without it nothing is known.

    `wanted`: the objects of the values `chosen`. `agent`: nodes that the node agent selects; None =
    it is not chosen. `unserved`: wanted kinds that the cluster does not serve. `denied`: objects
    that this user may not write. `namespaces`: those that are wanted, None = it does not exist.
    `pull_secrets`: by which images are pulled. `console_secrets`: which the console or its Ingress
    names. `prometheus`: the path of the one that was found; "" = none.
    """

    now: Moment
    program_version: str
    chosen: Installation
    wanted: tuple[Manifest, ...]
    server: ServerFact
    agent: NodeChoice | None = None
    unserved: tuple[str, ...] | Unread = ()
    denied: tuple[str, ...] | Unread = ()
    namespaces: Mapping[str, Manifest | Unread | None] = {}
    releases: tuple[str, ...] | Unread = ()
    definitions: tuple[DefinitionFact, ...] = ()
    inventory: InventoryFact | Unread | None = None
    objects: tuple[ObjectFact, ...] = ()
    pods: tuple[PodFact, ...] | Unread = ()
    leases: tuple[LeaseFact | Unread, ...] = ()
    workloads: tuple[WorkloadFact, ...] | Unread = ()
    extenders: tuple[ExtenderFact, ...] | Unread = ()
    nodes: tuple[NodeFact, ...] | Unread = ()
    node_leases: tuple[LeaseFact, ...] | Unread = ()
    certificates: tuple[CertificateFact, ...] = ()
    pull_secrets: tuple[SecretFact, ...] = ()
    console_secrets: tuple[SecretFact, ...] = ()
    prometheus: str | Unread = ""
    read_seconds: float = 0.0

    @property
    def server_now(self) -> Moment:
        """The API server's time."""
        return self.now + (self.server.ahead_seconds or 0.0)
