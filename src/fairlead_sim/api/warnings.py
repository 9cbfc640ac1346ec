"""The API server's warnings to writers of a Service: fields without effect or deprecated."""

from __future__ import annotations

from typing import Any


def service_warnings(service: dict[str, Any]) -> list[str]:
    """In the order in which the real server reports them.

    >>> service_warnings({"spec": {"type": "NodePort", "externalName": "x.io"}})
    ['spec.externalName is ignored when spec.type is not "ExternalName"']
    """
    spec = service.get("spec") or {}
    is_name, is_headless = spec.get("type") == "ExternalName", spec.get("clusterIP") == "None"
    warnings = []
    if is_headless and spec.get("loadBalancerIP"):
        warnings.append("spec.loadBalancerIP is ignored for headless services")
    if is_headless and spec.get("externalIPs"):
        warnings.append("spec.externalIPs is ignored for headless services")
    if is_headless and spec.get("sessionAffinity", "None") != "None":
        warnings.append("spec.SessionAffinity is ignored for headless services")
    if spec.get("externalIPs") and not is_headless and not is_name:
        warnings.append(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        )
    if spec.get("externalIPs") and is_name:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.get("externalName") and not is_name:
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        warnings.append(
            'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
        )
    return warnings
