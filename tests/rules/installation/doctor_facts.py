"""Facts before and after an installation, as the doctor reads them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from fairlead.model.actions import ObjectRef
from fairlead.model.installation import Installation, StoreValues
from fairlead.model.installed.facts import (
    CertificateFact,
    InstallationFacts,
    InventoryFact,
    LeaseFact,
    NodeFact,
    ObjectFact,
    PodFact,
    ServerFact,
    Unread,
)
from fairlead.model.node_choice import Expression, NodeChoice, Term
from fairlead.wire.installation.components import installed_objects

SYSTEM, NODE_SPACE = "fairlead-system", "fairlead-nodes"
NOW = 1_000_000.0
DAY = 86_400.0
HIDDEN = Unread('nodes is forbidden: User "ann" cannot list resource "nodes"')
GPU_NODES = NodeChoice(
    terms=(Term((Expression("nvidia.com/gpu.present", "In", ("true",)),)),),
)
LABELS = {"nvidia.com/gpu.present": "true"}
NODE = NodeFact(
    "gpu-1", LABELS, (), True, "containerd://2.1.4", "v1.36.3", "6.12.9", ("nvidia.com/gpu",)
)
ENFORCE = "pod-security.kubernetes.io/enforce"
WEBHOOK = CertificateFact("ValidatingWebhookConfiguration x", NOW + 80 * DAY)


def namespace(name: str = SYSTEM, level: str = "restricted", **meta: Any) -> dict[str, Any]:
    labels = {ENFORCE: level, "fairlead.io/installation": "system"}
    return {"kind": "Namespace", "metadata": {"name": name, "labels": labels, **meta}}


CHOSEN = Installation(store=StoreValues(size="1Gi"))
BEFORE = InstallationFacts(
    now=NOW,
    program_version="0.2.0",
    chosen=CHOSEN,
    wanted=tuple(installed_objects(CHOSEN)),
    server=ServerFact("v1.36.3", (1, 36), 0.0),
    agent=GPU_NODES,
    namespaces={NODE_SPACE: None, SYSTEM: None},
    nodes=(NODE, NodeFact("cpu-1", kubelet="v1.36.3", runtime="containerd://1.6.2")),
    node_leases=(LeaseFact("kube-node-lease", "gpu-1", "gpu-1", NOW - 8, 40),),
    prometheus="/api/v1/namespaces/m/services/prometheus:9090/proxy",
)
"""A cluster that is ready for an installation."""
AGENT_POD = PodFact(NODE_SPACE, "agent-x", "fairlead-node-agent", "gpu-1", True)
READY = {"observedGeneration": 1, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}


def console(**status: Any) -> ObjectFact:
    found = {
        "kind": "Deployment",
        "metadata": {"name": "fairlead-console", "namespace": SYSTEM, "generation": 1},
        "spec": {"replicas": 2},
        "status": READY | status,
    }
    ref = ObjectRef("apps/v1", "Deployment", "fairlead-console", SYSTEM)
    return ObjectFact(ref, found, found)


AFTER = replace(
    BEFORE,
    inventory=InventoryFact("0.2.0", is_complete=True),
    namespaces={SYSTEM: namespace(), NODE_SPACE: namespace(NODE_SPACE, "privileged")},
    objects=(console(),),
    pods=(AGENT_POD,),
    leases=(LeaseFact(SYSTEM, "fairlead-quota", "quota-1", NOW - 3, 15),),
    certificates=(WEBHOOK,),
)
"""A sound installation."""
