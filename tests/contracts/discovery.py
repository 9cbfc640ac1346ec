"""What an API server announces in its discovery."""

from __future__ import annotations

from typing import Any

from tests.contracts.api_client import ApiClient

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def discovered(api: ApiClient) -> dict[tuple[str, str, str], Any]:
    found = {}
    for path in ("/api", "/apis"):
        for group in api.ask("GET", path, headers={"Accept": _AGGREGATED}).body["items"]:
            for version in group["versions"]:
                for resource in version["resources"]:
                    found[
                        group["metadata"].get("name", ""), version["version"], resource["resource"]
                    ] = resource
    return found
