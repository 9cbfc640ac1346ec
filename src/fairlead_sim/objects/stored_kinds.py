"""Which kinds does the simulated cluster keep without doing anything about them?

People and charts create them, so they are stored, listed, watched, checked and filled in as the real server does it; where somebody would
expect an effect, a warning says that there is none (`note`). All of it is data: no kind here has code of its own.
"""

from __future__ import annotations

from typing import Any

from fairlead_sim.schema.resource import ResourceKind

_ADMISSION = "admissionregistration.k8s.io"
_NETWORKING = "networking.k8s.io"
_STORAGE = "storage.k8s.io"
_WEBHOOK_NOTE = "the simulated cluster stores this webhook configuration and never calls its webhooks"
_POLICY_NOTE = "the simulated cluster stores this admission policy and never enforces it"


def _kind(group: str, version: str, kind: str, plural: str, *short: str, **more: Any) -> ResourceKind:
    return ResourceKind(group, version, kind, plural, kind.lower(), short, **more)


def _cluster(group: str, kind: str, plural: str, *short: str, **more: Any) -> ResourceKind:
    return _kind(group, "v1", kind, plural, *short, namespaced=False, **more)


def _admission(kind: str, plural: str, note: str = "", **more: Any) -> ResourceKind:
    return _cluster(_ADMISSION, kind, plural, categories=("api-extensions",), note=note, **more)


_AUTOSCALERS = _kind(
    "autoscaling",
    "v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    "hpa",
    categories=("all",),
    subresources=("status",),
    note="the simulated cluster has no autoscaler: nothing is scaled and the status stays empty",
)

ENDPOINT_SLICES = _kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
POD_TEMPLATES = _kind("", "v1", "PodTemplate", "podtemplates")
REPLICATION_CONTROLLERS = _kind(
    *("", "v1", "ReplicationController", "replicationcontrollers", "rc"),
    categories=("all",),
    subresources=("scale", "status"),
    note="the simulated cluster makes no pods for a ReplicationController: use a Deployment",
)

STORED_KINDS: tuple[ResourceKind, ...] = (
    _kind("", "v1", "LimitRange", "limitranges", "limits", note="the simulated cluster does not apply limit ranges"),
    POD_TEMPLATES,
    REPLICATION_CONTROLLERS,
    _kind(
        *("", "v1", "ResourceQuota", "resourcequotas", "quota"),
        subresources=("status",),
        note="the simulated cluster does not enforce resource quotas",
    ),
    _admission("MutatingAdmissionPolicy", "mutatingadmissionpolicies", _POLICY_NOTE),
    _admission("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    _admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", _WEBHOOK_NOTE),
    _admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies", _POLICY_NOTE, subresources=("status",)),
    _admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    _admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", _WEBHOOK_NOTE),
    _AUTOSCALERS,
    _kind(
        *("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa"),
        categories=("all",),
        subresources=("status",),
        note=_AUTOSCALERS.note,
        stored_as=_AUTOSCALERS,
    ),
    ENDPOINT_SLICES,
    _cluster(_NETWORKING, "IngressClass", "ingressclasses"),
    _kind(_NETWORKING, "v1", "Ingress", "ingresses", "ing", subresources=("status",)),
    _kind(
        *(_NETWORKING, "v1", "NetworkPolicy", "networkpolicies", "netpol"),
        note="the simulated cluster has no network: this policy holds nothing back",
    ),
    _cluster("node.k8s.io", "RuntimeClass", "runtimeclasses"),
    _cluster(_STORAGE, "CSIDriver", "csidrivers"),
    _cluster(_STORAGE, "CSINode", "csinodes"),
    _cluster(_STORAGE, "VolumeAttachment", "volumeattachments", subresources=("status",)),
    _cluster(_STORAGE, "VolumeAttributesClass", "volumeattributesclasses", "vac"),
)
