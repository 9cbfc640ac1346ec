"""All objects of an installation, by the file of `deploy/` that shows them.

A file of `deploy/` is a component with the defaults (`tools/deploy_objects.py` writes it); an
installation is the components of its parts, in an order in which each object finds what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Final, Literal

from msgspec.structs import replace

from fairlead.model.actions import object_ref
from fairlead.model.installation import (
    INSTALLATION_LABEL,
    NODE_PART,
    SYSTEM_PART,
    IngressValues,
    Installation,
    OwnAccounts,
    Parts,
    SignInValues,
    StoreValues,
)
from fairlead.wire.installation import (
    console_parts,
    deciding_parts,
    people_parts,
    reading_parts,
    usage_parts,
)
from fairlead.wire.installation.object_parts import PART_OF, POD_SECURITY, RESTRICTED
from fairlead.wire.installation.people_webhook import people_webhook
from fairlead.wire.installation.policies.account_policies import account_policies
from fairlead.wire.installation.policies.agent_policies import agent_policies
from fairlead.wire.installation.policies.console_policies import console_policies
from fairlead.wire.installation.policies.people_policies import people_policies
from fairlead.wire.installation.policies.quota_policies import quota_policies
from fairlead.wire.installation.policies.renewal_policy import renewal_policy
from fairlead.wire.installation.policies.sharing_policies import sharing_policies
from fairlead.wire.installation.policies.term_policies import term_policies
from fairlead.wire.installation.quota_webhooks import quota_webhooks
from fairlead.wire.installation.sharing_webhooks import sharing_webhooks
from fairlead.wire.quota.tree_definition import quota_tree_definition

Object = dict[str, Any]

ADMISSION_PART: Final = "fairlead.io/admission"
"""The label with the part of an admission object.

One of: scheduler, asks, grants, quota, tree, accounts, node-agent, people, console.
"""


_ADMISSIONS: Final[tuple[Literal["policies", "webhooks"], ...]] = ("policies", "webhooks")
_SCHEDULERS: Final[tuple[Literal["own", "control-plane"], ...]] = ("own", "control-plane")


def namespaces(chosen: Installation) -> list[Object]:
    """The namespaces of Fairlead's pods.

    One admits only pods that need nothing of their node. In the other one agent and exporter mount
    paths of the node, and on machines of the control plane the extender uses the host's network.
    """
    return [
        _namespace(chosen.node_namespace, NODE_PART, {f"{POD_SECURITY}/enforce": "privileged"}),
        # Removed last: it has the inventory.
        _namespace(chosen.namespace, SYSTEM_PART, RESTRICTED),
    ]


def _namespace(name: str, part: str, security: Object) -> Object:
    labels = {**PART_OF, INSTALLATION_LABEL: part, **security}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _account_admission(accounts: OwnAccounts) -> list[Object]:
    return [*account_policies(accounts), *term_policies(accounts)]


COMPONENTS: Final[dict[str, Callable[[Installation], list[Object]]]] = {
    "namespace": namespaces,
    "quota-crd": lambda _: [quota_tree_definition()],
    "reader": reading_parts.reader,
    "console-sign-in": console_parts.console_sign_in,
    "console-people": console_parts.console_people,
    "console-admission": lambda chosen: console_policies(chosen.accounts),
    "console-access": console_parts.console_access,
    "console": console_parts.console,
    "usage-recorder": usage_parts.usage_recorder,
    "cluster-exporter": reading_parts.cluster_exporter,
    "gpu-exporter": reading_parts.gpu_exporter,
    "gpu-exporter-rights": reading_parts.gpu_exporter_rights,
    "gpushare-extender": deciding_parts.extender,
    "gpushare-scheduler": deciding_parts.scheduler,
    "gpushare-control-plane": deciding_parts.control_plane_extender,
    "node-agent-admission": lambda chosen: agent_policies(chosen.accounts),
    "node-agent": deciding_parts.node_agent,
    "account-admission": lambda chosen: _account_admission(chosen.accounts),
    "admission-webhook": deciding_parts.admission_webhook,
    "gpushare-admission": lambda chosen: sharing_policies(chosen.accounts),
    "gpushare-webhook": lambda chosen: sharing_webhooks(chosen.accounts),
    "quota-controller": deciding_parts.quota_controller,
    "quota-admission": lambda chosen: quota_policies(chosen.accounts),
    "quota-webhook": lambda chosen: quota_webhooks(chosen.namespace),
    "people": people_parts.people_roles,
    "people-controller": people_parts.people_controller,
    "people-admission": lambda chosen: people_policies(chosen.accounts),
    "people-webhook": lambda chosen: people_webhook(chosen.namespace),
}
"""Objects by the name of their file in `deploy/`, without `.yaml`."""


def _has_webhooks(chosen: Installation) -> bool:
    return chosen.admission == "webhooks"


def _is_own(chosen: Installation) -> bool:
    return chosen.scheduler == "own"


def _has_sign_in(chosen: Installation) -> bool:
    return chosen.parts.console and chosen.sign_in.enabled


def _has_sharing_webhook(chosen: Installation) -> bool:
    return chosen.parts.gpu_sharing and _has_webhooks(chosen)


IS_IN: Final[dict[str, Callable[[Installation], bool]]] = {
    "namespace": lambda _: True,
    # Groups name leaves of the tree.
    "quota-crd": lambda chosen: chosen.parts.quota or chosen.parts.people,
    "people": lambda chosen: chosen.parts.people,
    "reader": lambda chosen: chosen.parts.console,
    "console-sign-in": _has_sign_in,
    "console-people": lambda chosen: _has_sign_in(chosen) and chosen.parts.people,
    "console-admission": _has_sign_in,
    "console-access": lambda chosen: chosen.parts.console,
    "console": lambda chosen: chosen.parts.console,
    "usage-recorder": lambda chosen: _has_sign_in(chosen) and bool(chosen.store.url),
    "cluster-exporter": lambda chosen: chosen.parts.cluster_exporter,
    "gpu-exporter": lambda chosen: chosen.parts.gpu_exporter,
    "gpu-exporter-rights": lambda chosen: chosen.parts.gpu_exporter_rights,
    "gpushare-extender": lambda chosen: chosen.parts.gpu_sharing and _is_own(chosen),
    "gpushare-scheduler": lambda chosen: chosen.parts.gpu_sharing and _is_own(chosen),
    "gpushare-control-plane": lambda chosen: chosen.parts.gpu_sharing and not _is_own(chosen),
    "node-agent-admission": lambda chosen: chosen.parts.node_agent,
    "node-agent": lambda chosen: chosen.parts.node_agent,
    "account-admission": lambda chosen: chosen.parts.gpu_sharing or chosen.parts.quota,
    "admission-webhook": lambda chosen: (
        chosen.parts.quota or chosen.parts.people or _has_sharing_webhook(chosen)
    ),
    "gpushare-webhook": _has_sharing_webhook,
    "gpushare-admission": lambda chosen: chosen.parts.gpu_sharing and not _has_webhooks(chosen),
    "quota-controller": lambda chosen: chosen.parts.quota,
    "quota-admission": lambda chosen: chosen.parts.quota and not _has_webhooks(chosen),
    "quota-webhook": lambda chosen: chosen.parts.quota,
    "people-controller": lambda chosen: chosen.parts.people,
    "people-webhook": lambda chosen: chosen.parts.people,
    "people-admission": lambda chosen: chosen.parts.people,
}
"""Whether an installation has a component, in an order in which each object finds what it needs."""


def installed_objects(chosen: Installation) -> list[Object]:
    """All objects of an installation, each once.

    >>> from fairlead.model.installation import Parts
    >>> small = Installation(parts=Parts(False, False, True, False, False, False, False, False))
    >>> [each["kind"] for each in installed_objects(small)]
    ['Namespace', 'Namespace', 'ServiceAccount', 'DaemonSet', 'NetworkPolicy']
    """
    return [each for name in IS_IN for each in component_objects(name, chosen)]


def every_object(chosen: Installation) -> list[Object]:
    """All objects that some installation in these two namespaces has, each once."""
    every_part = Parts(gpu_exporter_rights=True)
    chosen = replace(
        chosen,
        store=StoreValues(size="1Gi"),
        ingress=IngressValues("console.example"),
        sign_in=SignInValues(),
    )
    found = {
        object_ref(each).identity: each
        for admission, scheduler in product(_ADMISSIONS, _SCHEDULERS)
        for each in installed_objects(
            replace(chosen, parts=every_part, admission=admission, scheduler=scheduler)
        )
    }
    with_server = replace(chosen, parts=every_part, store=StoreValues(url="postgresql://db/x"))
    for each in component_objects("usage-recorder", with_server):
        found[object_ref(each).identity] = each
    return list(found.values())


def account_limits() -> frozenset[tuple[str, str, str, str]]:
    """Identities of the admission objects that only bound rights that Fairlead gives: they outlive
    these rights.
    """
    accounts = Installation().accounts  # the objects have no namespace
    limits = (
        *_account_admission(accounts),
        *agent_policies(accounts),
        *people_policies(accounts),
        *console_policies(accounts),
        *renewal_policy(),  # it limits a right that users have until the end
    )
    return frozenset(object_ref(each).identity for each in limits)


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
