"""All objects of an installation, by the file of `deploy/` that shows them.

A file of `deploy/` is a component with the defaults (`tools/deploy_objects.py` writes it); an
installation is the components of its parts, in an order in which each object finds what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.model.installation import Installation
from fairlead.settings import SYSTEM_NAMESPACE
from fairlead.wire.installation import deciding_parts, reading_parts
from fairlead.wire.installation.account_policies import account_policies
from fairlead.wire.installation.agent_policies import agent_policies
from fairlead.wire.installation.quota_policies import quota_policies
from fairlead.wire.installation.quota_webhooks import quota_webhooks
from fairlead.wire.installation.sharing_policies import sharing_policies
from fairlead.wire.installation.sharing_webhooks import sharing_webhooks
from fairlead.wire.quota.tree_definition import quota_tree_definition

Object = dict[str, Any]

ADMISSION_PART: Final = "fairlead.io/admission"
"""The label with the part of an admission object.

One of: scheduler, asks, grants, quota, tree, accounts, node-agent.
"""


def namespace(_: Installation) -> list[Object]:
    """The namespace of Fairlead's own pods. `privileged`: agent and exporter mount paths of the
    node, and on a control plane's machines the extender uses the host's network.
    """
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": SYSTEM_NAMESPACE, "labels": labels},
        }
    ]


COMPONENTS: Final[dict[str, Callable[[Installation], list[Object]]]] = {
    "namespace": namespace,
    "quota-crd": lambda _: [quota_tree_definition()],
    "reader": reading_parts.reader,
    "console": reading_parts.console,
    "cluster-exporter": reading_parts.cluster_exporter,
    "gpu-exporter": reading_parts.gpu_exporter,
    "gpu-exporter-rights": reading_parts.gpu_exporter_rights,
    "gpushare-extender": deciding_parts.extender,
    "gpushare-scheduler": deciding_parts.scheduler,
    "gpushare-control-plane": deciding_parts.control_plane_extender,
    "node-agent-admission": lambda _: agent_policies(),
    "node-agent": deciding_parts.node_agent,
    "account-admission": lambda _: account_policies(),
    "admission-webhook": deciding_parts.admission_webhook,
    "gpushare-admission": lambda _: sharing_policies(),
    "gpushare-webhook": lambda _: sharing_webhooks(),
    "quota-controller": deciding_parts.quota_controller,
    "quota-admission": lambda _: quota_policies(),
    "quota-webhook": lambda _: quota_webhooks(),
}
"""Objects by the name of their file in `deploy/`, without `.yaml`."""


def _has_webhooks(chosen: Installation) -> bool:
    return chosen.admission == "webhooks"


def _is_own(chosen: Installation) -> bool:
    return chosen.scheduler == "own"


def _has_sharing_webhook(chosen: Installation) -> bool:
    return chosen.parts.gpu_sharing and _has_webhooks(chosen)


IS_IN: Final[dict[str, Callable[[Installation], bool]]] = {
    "namespace": lambda _: True,
    "quota-crd": lambda chosen: chosen.parts.quota,
    "reader": lambda chosen: chosen.parts.console,
    "console": lambda chosen: chosen.parts.console,
    "cluster-exporter": lambda chosen: chosen.parts.cluster_exporter,
    "gpu-exporter": lambda chosen: chosen.parts.gpu_exporter,
    "gpu-exporter-rights": lambda chosen: chosen.parts.gpu_exporter_rights,
    "gpushare-extender": lambda chosen: chosen.parts.gpu_sharing,
    "gpushare-scheduler": lambda chosen: chosen.parts.gpu_sharing and _is_own(chosen),
    "gpushare-control-plane": lambda chosen: chosen.parts.gpu_sharing and not _is_own(chosen),
    "node-agent-admission": lambda chosen: chosen.parts.node_agent,
    "node-agent": lambda chosen: chosen.parts.node_agent,
    "account-admission": lambda chosen: chosen.parts.gpu_sharing or chosen.parts.quota,
    "admission-webhook": lambda chosen: chosen.parts.quota or _has_sharing_webhook(chosen),
    "gpushare-webhook": _has_sharing_webhook,
    "gpushare-admission": lambda chosen: chosen.parts.gpu_sharing and not _has_webhooks(chosen),
    "quota-controller": lambda chosen: chosen.parts.quota,
    "quota-admission": lambda chosen: chosen.parts.quota and not _has_webhooks(chosen),
    "quota-webhook": lambda chosen: chosen.parts.quota,
}
"""Whether an installation has a component, in an order in which each object finds what it needs."""


def installed_objects(chosen: Installation) -> list[Object]:
    """All objects of an installation, each once.

    >>> from fairlead.model.installation import Parts
    >>> small = Installation(parts=Parts(False, False, True, False, False, False, False))
    >>> [each["kind"] for each in installed_objects(small)]
    ['Namespace', 'ServiceAccount', 'DaemonSet']
    """
    return [each for name in IS_IN for each in component_objects(name, chosen)]


def component_objects(name: str, chosen: Installation) -> list[Object]:
    """The objects of one component; none if the installation does not have it."""
    if not IS_IN[name](chosen):
        return []
    left = _left_out(name, chosen)
    return [each for each in COMPONENTS[name](chosen) if _part(each) not in left]


def _left_out(name: str, chosen: Installation) -> frozenset[str]:
    """Parts of admission that this installation does not have of a component."""
    if name == "quota-webhook" and chosen.admission == "policies":
        return frozenset(("quota",))
    if name.startswith("gpushare-") and chosen.scheduler == "control-plane":
        return frozenset(("scheduler",))
    return frozenset()


def _part(obj: Object) -> str:
    return str(obj["metadata"].get("labels", {}).get(ADMISSION_PART, ""))
