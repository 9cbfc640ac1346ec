"""Discovery of an API server's resources: the aggregated form, and older requests per group."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from fairlead.edge.connection.decoders import decoder_of
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.resource import Resource
from fairlead.errors import OutsideError
from fairlead.settings import OLDEST_KUBERNETES

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


class ServedResource(Struct, frozen=True):
    resource: Resource
    verbs: tuple[str, ...] = ()


class Discovery(Struct, frozen=True):
    """The served resources; versions of one resource in the server's order of preference."""

    served: tuple[ServedResource, ...] = ()

    def find(
        self, group: str, plural: str, versions: Iterable[str] | None = None
    ) -> Resource | None:
        """The resource in the first of `versions` that is served, or in the server's preferred
        version; None when it is not served.
        """
        found = {
            each.resource.version: each.resource
            for each in reversed(self.served)
            if self._is(each, group, plural)
        }
        if versions is None:
            return next(reversed(found.values()), None)
        return next((found[version] for version in versions if version in found), None)

    @staticmethod
    def _is(each: ServedResource, group: str, plural: str) -> bool:
        return each.resource.group == group and each.resource.plural == plural


class ServerVersion(Struct, rename="camel"):
    """The answer of `/version`. `minor` may have a plus sign on managed clusters."""

    major: str = ""
    minor: str = ""
    git_version: str = ""
    platform: str = ""

    @property
    def numbers(self) -> tuple[int, int] | None:
        """
        >>> ServerVersion("1", "27+", "v1.27.3-gke.100").numbers
        (1, 27)
        >>> ServerVersion(git_version="v1.36.3").numbers
        (1, 36)
        """
        major, minor = self.major, self.minor
        if not major and self.git_version.startswith("v"):
            major, _, rest = self.git_version[1:].partition(".")
            minor = rest.partition(".")[0]
        digits = "".join(char for char in minor if char.isdigit())
        return (int(major), int(digits)) if major.isdigit() and digits else None


def check_version(server: str, version: ServerVersion) -> None:
    """Raises OutsideError for a server that is too old.

    A server without a version number is accepted.
    """
    numbers = version.numbers
    oldest = ".".join(map(str, OLDEST_KUBERNETES))
    if numbers is not None and (0, 0) < numbers < OLDEST_KUBERNETES:
        raise OutsideError(
            "kubernetes",
            (
                f"API server `{server}` is version "
                f"`{version.git_version or '.'.join(map(str, numbers))}`, older than {oldest}"
            ),
            f"upgrade the cluster to Kubernetes {oldest} or later",
        )


class _Kind(Struct):
    kind: str = ""


class _AggregatedResource(Struct, rename="camel"):
    resource: str = ""
    response_kind: _Kind | None = None
    scope: str = "Namespaced"
    verbs: list[str] | None = None


class _AggregatedVersion(Struct):
    version: str = ""
    resources: list[_AggregatedResource] | None = None


class _AggregatedGroup(Struct):
    metadata: _Name | None = None
    versions: list[_AggregatedVersion] | None = None


class _Name(Struct):
    name: str | None = None


class _AggregatedDiscovery(Struct):
    items: list[_AggregatedGroup] | None = None


class _GroupVersion(Struct, rename="camel"):
    group_version: str = ""
    version: str = ""


class _Group(Struct, rename="camel"):
    name: str = ""
    versions: list[_GroupVersion] | None = None
    preferred_version: _GroupVersion | None = None


class _GroupList(Struct):
    groups: list[_Group] | None = None


class _Resource(Struct):
    name: str = ""
    kind: str = ""
    namespaced: bool = True
    verbs: list[str] | None = None


class _ResourceList(Struct):
    resources: list[_Resource] | None = None


def roots(groups: set[str] | None) -> list[str]:
    """The paths to ask.

    The core API's resources are known, so `/api` is asked only if all groups are wanted, or "" is.
    """
    return ["/apis", "/api"] if groups is None or "" in groups else ["/apis"]


def discovery_request(path: str) -> ApiRequest:
    """Request for `/api` or `/apis`; the content type of the answer distinguishes the two forms."""
    return ApiRequest("get", "GET", path, accept=AGGREGATED)


def is_aggregated(content_type: str) -> bool:
    return "as=APIGroupDiscoveryList" in content_type.replace(" ", "")


def parse_aggregated(body: bytes) -> list[ServedResource]:
    found = []
    for group in decoder_of(_AggregatedDiscovery).decode(body).items or ():
        name = (group.metadata.name if group.metadata else None) or ""
        for version in group.versions or ():
            for each in version.resources or ():
                kind = each.response_kind.kind if each.response_kind else ""
                resource = Resource(
                    name, version.version, each.resource, each.scope == "Namespaced", kind
                )
                found.append(ServedResource(resource, tuple(each.verbs or ())))
    return found


def parse_groups(body: bytes, wanted: Iterable[str] | None) -> list[tuple[str, str]]:
    """(group, version) pairs of the older `/apis`, the preferred version of each group first; only
    `wanted` groups when given.
    """
    only = None if wanted is None else set(wanted)
    pairs = []
    for group in decoder_of(_GroupList).decode(body).groups or ():
        if only is not None and group.name not in only:
            continue
        versions = [version.version for version in group.versions or ()]
        preferred = group.preferred_version.version if group.preferred_version else ""
        # stable: the others keep the server's order
        versions.sort(key=lambda version: version != preferred)
        pairs += [(group.name, version) for version in versions]
    return pairs


def resources_request(group: str, version: str) -> ApiRequest:
    return ApiRequest("get", "GET", f"/apis/{group}/{version}" if group else f"/api/{version}")


def parse_resources(body: bytes, group: str, version: str) -> list[ServedResource]:
    """Resources of one group and version, without subresources."""
    return [
        ServedResource(
            Resource(group, version, each.name, each.namespaced, each.kind), tuple(each.verbs or ())
        )
        for each in decoder_of(_ResourceList).decode(body).resources or ()
        if "/" not in each.name
    ]
