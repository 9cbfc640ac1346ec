"""Objects of the usage recorder, where the store is a database server. With a SQLite file, which is
for one process, the console records usage itself (`console_parts`).
"""

from __future__ import annotations

from typing import Final

from fairlead.model.installation import Installation
from fairlead.settings import USAGE_RECORDER_LEASE, USAGE_RECORDER_POD, USAGE_RECORDER_PORT
from fairlead.wire.installation.console_parts import SECRETS
from fairlead.wire.installation.object_parts import (
    CLUSTER_CRITICAL,
    LINUX,
    LOCKED,
    NON_ROOT,
    POD_NAME,
    Object,
    PartPlace,
    account,
    cluster_rights,
    deployment,
    disruption_budget,
    grant,
    lease_grants,
    network_policy,
    port,
    probes,
    pull_secrets,
    requests,
    rights,
    spread,
    withheld_gpu_rights,
)
from fairlead.wire.installation.reading_parts import followed, sources

_NAME: Final = USAGE_RECORDER_POD


def usage_recorder(chosen: Installation) -> list[Object]:
    """The usage recorder: the replica that holds the Lease records. It reads the cluster and writes
    to the store alone.
    """
    place = PartPlace(_NAME, chosen.namespace)
    rules = [grant("", "nodes pods", "list watch"), *followed()]
    return [
        account(place),
        *cluster_rights(_NAME, place, rules),
        *withheld_gpu_rights(_NAME, place),
        *rights(_NAME, place, chosen.namespace, lease_grants(USAGE_RECORDER_LEASE)),
        deployment(place, chosen.replicas, _pod(chosen)),
        disruption_budget(place),
        *network_policy(place, chosen, USAGE_RECORDER_PORT),
    ]


def _pod(chosen: Installation) -> Object:
    container = {
        "name": "recorder",
        "image": chosen.image,
        "command": [
            "fairlead",
            "usage-recorder",
            f"--listen=:{USAGE_RECORDER_PORT}",
            "--identity=$(POD_NAME)",
            f"--lease-namespace={chosen.namespace}",
            f"--store={chosen.store.url}",
            f"--secrets-folder={SECRETS}",
            f"--billing-time-zone={chosen.billing_time_zone}",
            *sources(chosen),
        ],
        "env": [POD_NAME],
        **port("metrics", USAGE_RECORDER_PORT),
        **probes("metrics"),
        **requests("100m", "256Mi"),
        "securityContext": LOCKED,
        "volumeMounts": [{"name": "secrets", "mountPath": SECRETS, "readOnly": True}],
    }
    secret = {"secretName": chosen.sign_in.secret, "optional": True}
    return {
        "serviceAccountName": _NAME,
        **pull_secrets(chosen),
        "priorityClassName": CLUSTER_CRITICAL,
        "nodeSelector": LINUX,
        **spread(_NAME),
        # The files of the Secret are the group's.
        "securityContext": {**NON_ROOT, "fsGroup": 65532},
        "containers": [container],
        "volumes": [{"name": "secrets", "secret": secret}],
    }
