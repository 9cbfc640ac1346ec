"""Writes docs/reference/installation-values.md from the type `Installation`.

`tests/docs` compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.model.installation import Installation

FILE: Final = Path(__file__).parent.parent / "docs" / "reference" / "installation-values.md"
HEAD: Final = """# Values of an installation

Written by `python tools/docs_installation_values.py` from `fairlead.model.installation`; do not
edit.

`fairlead install --values FILE` reads them from YAML; `--set KEY=VALUE` sets one, with dots for
keys within keys (`--set parts.quota=false`). An unknown key is refused.

| key | values | default | meaning |
|---|---|---|---|
"""
MEANINGS: Final = {
    "parts.console": "the boards",
    "parts.clusterExporter": "metrics of nodes, GPUs, jobs and quotas",
    "parts.gpuExporter": "metrics of each node's GPUs",
    "parts.gpuExporterRights": "rights for flags of the GPU exporter that read the API server",
    "parts.gpuSharing": "scheduler extender and admission for pods that share GPUs",
    "parts.nodeAgent": "the device plugin of nodes with GPUs",
    "parts.quota": "quota controller, quota tree and its admission",
    "parts.people": (
        "users and groups: definitions, roles, namespace `kube-ai`, and the people controller"
    ),
    "namespace": "the namespace of pods that need nothing of their node; it does not change",
    "nodeNamespace": (
        "the namespace of pods that use paths, processes or the network of their node"
    ),
    "image": "the image of all processes of Fairlead",
    "kubeSchedulerImage": "kube-scheduler, of the API server's minor version",
    "pullSecrets": (
        "names of Secrets of type `kubernetes.io/dockerconfigjson` by which the images are pulled; "
        "each is in both namespaces"
    ),
    "replicas": "replicas of each part of which one works and others stand by",
    "admission": "policies need Kubernetes 1.36; webhooks are for older API servers",
    "scheduler": (
        "a kube-scheduler of its own, or the extender alone on the machines of the control plane"
    ),
    "gpuSource": "flag `--gpu-source` of console and cluster exporter; empty: its default",
    "prometheus": "address of a Prometheus for console and cluster exporter; empty: none",
    "networkPolicies": (
        "NetworkPolicies that limit which clients reach the pods; a network without support for "
        "them ignores them"
    ),
    "kernelLog": (
        "the GPU exporter reads `/dev/kmsg`, for errors that occur while it does not run, and is "
        "privileged for it"
    ),
    "firstAdministrator": (
        "the user `admin` is made where no user is an administrator; later changes of it stay"
    ),
    "billingTimeZone": (
        "time zone in which a billing day begins at midnight (`Asia/Shanghai`); the first usage "
        "recorder stores it for good"
    ),
    "charts": (
        "folder of charts in a registry (`oci://registry.example.com/charts`), with which the page "
        "Components fills in addresses; empty: none"
    ),
    "signIn.enabled": (
        "users sign in at the console, which has a Service then; false: every client is an "
        "administrator, and the console answers on its pod's loopback alone"
    ),
    "signIn.externalUrl": (
        "the console's address in browsers, with the base path (`https://gpu.example/`); empty: by "
        "the host that they name"
    ),
    "signIn.basePath": "path below which a proxy or the Ingress serves the console",
    "signIn.trustedProxies": (
        "addresses or CIDR blocks of proxies and Ingress controllers whose `X-Forwarded-` headers "
        "count, separated by commas"
    ),
    "signIn.kubeconfigServer": (
        "the API server as users reach it, for kubeconfigs that pages issue; empty: as the cluster "
        "publishes it"
    ),
    "signIn.secret": (
        "a Secret of yours with what of these the console needs: `oidc-client-secret`, "
        "`oidc-ca.crt`, `store-password`, `store-ca.crt`"
    ),
    "signIn.oidc.issuer": "OpenID Connect provider at which users may sign in; empty: none",
    "signIn.oidc.clientId": "the console's id at the provider",
    "signIn.oidc.scopes": "what the provider is asked for",
    "signIn.oidc.userClaim": "the claim with the user's `externalUser.uid`",
    "store.url": (
        "database server of the console's store (`postgresql://…`, `mysql://…`), for `replicas` "
        "consoles and usage recorders; empty: a SQLite file, and one console that records usage"
    ),
    "store.size": (
        "size of a PersistentVolumeClaim for the SQLite file (`1Gi`); empty: it ends with its pod"
    ),
    "store.storageClass": "StorageClass of the claim; empty: the cluster's default",
    "ingress.host": "host name of an Ingress for the console; empty: none",
    "ingress.className": "IngressClass; empty: the cluster's default",
    "ingress.tlsSecret": "Secret with the host's certificate; empty: the Ingress has no TLS",
    "runtimeClass": "RuntimeClass of pods that load the GPU driver; empty: the node's default",
}


def page_text() -> str:
    defaults = msgspec.to_builtins(Installation())
    types = msgspec.json.schema_components([Installation])[1]
    return HEAD + "".join(_rows("Installation", types, defaults))


def _rows(
    type_: str, types: Mapping[str, Any], defaults: Mapping[str, Any], prefix: str = ""
) -> Iterator[str]:
    for name, schema in types[type_]["properties"].items():
        key = f"{prefix}{name}"
        if "$ref" in schema:
            inner = schema["$ref"].rpartition("/")[2]
            yield from _rows(inner, types, defaults[name], f"{key}.")
        else:
            yield _row(key, schema, defaults[name])


def _row(key: str, schema: dict[str, Any], default: Any) -> str:
    return f"| `{key}` | {_values(schema)} | `{json.dumps(default)}` | {MEANINGS[key]} |\n"


def _values(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    if "minimum" in schema:
        return f"{schema['minimum']} to {schema['maximum']}"
    if schema["type"] == "array":
        return f"at most {schema['maxItems']} names"
    return {"boolean": "`true`, `false`", "string": "text"}[schema["type"]]


if __name__ == "__main__":
    FILE.write_text(page_text(), encoding="utf-8")
