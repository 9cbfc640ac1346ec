"""Discovery: the kinds that the API server serves.

The aggregated form (`APIGroupDiscoveryList`, two requests for everything) is for today's clients;
the older lists per group and version are for all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from fairlead_sim.schema.resource import ResourceKind

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# A subresource's kind and verbs, where they are not those of its parent.
_SUBRESOURCES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}
_SUBRESOURCE_VERBS = {"log": ("get",), "status": ("get", "patch", "update")}


def api_versions(address: str) -> dict[str, Any]:
    """`/api`."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def api_groups(kinds: Iterable[ResourceKind]) -> dict[str, Any]:
    """`/apis`."""
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [api_group(group, kinds) for group in _groups(kinds) if group],
    }


def api_group(group: str, kinds: Iterable[ResourceKind]) -> dict[str, Any]:
    """`/apis/GROUP`, and an entry of `/apis`."""
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in _groups(kinds)[group]
    ]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": group,
        "versions": versions,
        "preferredVersion": versions[0],
    }


def api_resources(group: str, version: str, kinds: Iterable[ResourceKind]) -> dict[str, Any]:
    """`/api/v1` and `/apis/GROUP/VERSION`."""
    here = [ref for ref in kinds if (ref.group, ref.version) == (group, version)]
    resources = [
        entry
        for ref in here
        for entry in (_resource(ref), *(_subresource(ref, name) for name in ref.subresources))
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }


def aggregated_discovery(kinds: Iterable[ResourceKind], *, core: bool) -> dict[str, Any]:
    """`/api` (core) or `/apis` in the aggregated form."""
    kinds = tuple(kinds)
    groups = {
        group: versions for group, versions in _groups(kinds).items() if (group == "") is core
    }
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group, "creationTimestamp": None}
                if group
                else {"creationTimestamp": None},
                "versions": [_aggregated_version(group, version, kinds) for version in versions],
            }
            for group, versions in groups.items()
        ],
    }


def _groups(kinds: Iterable[ResourceKind]) -> dict[str, list[str]]:
    """Versions by group, the one to prefer first."""
    groups: dict[str, list[str]] = {}
    for ref in kinds:
        versions = groups.setdefault(ref.group, [])
        if ref.version not in versions:
            versions.append(ref.version)
    return {group: sorted(versions, key=_seniority) for group, versions in groups.items()}


def _seniority(version: str) -> tuple[int, int, int, str]:
    """The order of versions: v2, v1, v2beta1, v1beta2, v1alpha1, and then all other names.

    >>> sorted(["foo", "v1beta1", "v10", "v1", "v2alpha1", "v2beta1"], key=_seniority)
    ['v10', 'v1', 'v2beta1', 'v1beta1', 'v2alpha1', 'foo']
    """
    parts = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if parts is None:
        return 3, 0, 0, version
    major, stage, minor = parts.groups()
    return ("", "beta", "alpha").index(stage or ""), -int(major), -int(minor or 0), version


def _resource(ref: ResourceKind) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": ref.plural,
        "singularName": ref.singular,
        "namespaced": ref.namespaced,
        "kind": ref.kind,
        "verbs": _verbs(ref),
    }
    if ref.short_names:
        entry["shortNames"] = list(ref.short_names)
    if ref.categories:
        entry["categories"] = list(ref.categories)
    return entry


def _verbs(ref: ResourceKind) -> list[str]:
    """Of a kind whose definition is going nothing new can be made."""
    is_going = ref.custom is not None and ref.custom.is_terminating
    return [verb for verb in ref.verbs if not (is_going and verb in ("create", "patch", "update"))]


def _subresource(ref: ResourceKind, name: str) -> dict[str, Any]:
    group, version, kind, verbs = _subresource_kind(ref, name)
    entry = {
        "name": f"{ref.plural}/{name}",
        "singularName": "",
        "namespaced": ref.namespaced,
        "kind": kind,
        "verbs": list(verbs),
    }
    if (group, version) != (ref.group, ref.version):
        entry |= {"group": group, "version": version}
    return entry


def _subresource_kind(ref: ResourceKind, name: str) -> tuple[str, str, str, Sequence[str]]:
    return _SUBRESOURCES.get(name) or (
        ref.group,
        ref.version,
        ref.kind,
        _SUBRESOURCE_VERBS.get(name, ("get",)),
    )


def _aggregated_version(group: str, version: str, kinds: Iterable[ResourceKind]) -> dict[str, Any]:
    here = [ref for ref in kinds if (ref.group, ref.version) == (group, version)]
    return {
        "version": version,
        "resources": [_aggregated_resource(ref) for ref in here],
        "freshness": "Current",
    }


def _aggregated_resource(ref: ResourceKind) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": ref.plural,
        "responseKind": _response_kind(ref, ref.group, ref.version, ref.kind),
        "scope": "Namespaced" if ref.namespaced else "Cluster",
        "singularResource": ref.singular,
        "verbs": _verbs(ref),
    }
    if ref.short_names:
        entry["shortNames"] = list(ref.short_names)
    if ref.categories:
        entry["categories"] = list(ref.categories)
    if ref.subresources:
        entry["subresources"] = [_aggregated_subresource(ref, name) for name in ref.subresources]
    return entry


def _aggregated_subresource(ref: ResourceKind, name: str) -> dict[str, Any]:
    group, version, kind, verbs = _subresource_kind(ref, name)
    return {
        "subresource": name,
        "responseKind": _response_kind(ref, group, version, kind),
        "verbs": list(verbs),
    }


def _response_kind(ref: ResourceKind, group: str, version: str, kind: str) -> dict[str, str]:
    """A built-in kind leaves group and version empty if they are those of the list; for custom
    resources they are always given.
    """
    is_own = (group, version) == (ref.group, ref.version) and not ref.is_custom
    return {"group": "" if is_own else group, "version": "" if is_own else version, "kind": kind}
