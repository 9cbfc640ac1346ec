"""The ServiceAccount of a new pod, and what it gives the pod.

The account must be there, and its pull secrets are the pod's unless the pod names its own.
`default` counts as there: every namespace has it. The volume with the account's token, which a real
server adds, is left out: nothing here would read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_sim.objects.object_names import is_generated
from fairlead_sim.objects.resources import PODS, SERVICE_ACCOUNTS
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.status import forbidden

if TYPE_CHECKING:
    from fairlead_sim.store.cluster import StoredCluster


def service_account_name(pod: Object) -> str:
    """The name of a new pod in admission messages, without letters that the server generated."""
    name, prefix = str(pod["metadata"]["name"]), str(pod["metadata"].get("generateName") or "")
    return prefix if prefix and is_generated(name, prefix) else name


def with_account(cluster: StoredCluster, pod: Object) -> Object:
    """The pod with what its account gives it. Raises 403 when there is no such account."""
    spec, metadata = pod.get("spec") or {}, pod["metadata"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    account = cluster.get(SERVICE_ACCOUNTS, metadata["namespace"], name)
    if account is None and name != "default":
        why = (
            f"error looking up service account {metadata['namespace']}/{name}: serviceaccount "
            f'"{name}" not found'
        )
        raise forbidden(PODS, service_account_name(pod), why)
    pull_secrets = (account or {}).get("imagePullSecrets")
    return (
        {**pod, "spec": {**spec, "imagePullSecrets": pull_secrets}}
        if pull_secrets and not spec.get("imagePullSecrets")
        else pod
    )
