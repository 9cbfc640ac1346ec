"""Rules about the usage ledger. See docs/spec/telemetry.md#recording-rules-and-alerts."""

from __future__ import annotations

from typing import Final

from alerts.rule import Alert, Group

BEHIND_SECONDS: Final = 300
_NAME: Final = "app.kubernetes.io/name=fairlead-usage-recorder"
_HEARTBEAT: Final = "max_over_time(fairlead_usage_recorder_heartbeat_timestamp_seconds[6h])"
"""A recorder that has ended has no series: its last heartbeat counts for six hours more."""

GROUP: Final = Group(
    "fairlead-usage",
    "Usage",
    (),
    (
        Alert(
            "UsageNotRecorded",
            f"time() - max({_HEARTBEAT}) > {BEHIND_SECONDS}",
            "warning",
            "Usage is not recorded",
            "No usage recorder has written to the ledger for {{ $value | humanizeDuration }}. What "
            "pods hold meanwhile is recorded later if the API server still shows it; how busy GPUs "
            "are is lost. Look at the usage recorder's pods and at the store.",
            "The newest heartbeat of all usage recorders is older than five minutes. A recorder "
            "that the console runs inside has no series; the page Health shows its heartbeat. "
            "Without any recorder in the last six hours there is no alert.",
            (
                f"$ kubectl -n fairlead-system get pods -o wide -l {_NAME}",
                f"$ kubectl -n fairlead-system logs -l {_NAME} --prefix --tail=50",
                "fairlead_usage_recorder_pending_records",
            ),
            "Records wait (`pending_records` grows): the store does not answer, its disk is full, "
            "or its password has changed ([store.md](../how-to/store.md)). No record waits and "
            "the heartbeat is 0: no recorder has the Lease `fairlead-usage-recorder`, or the API "
            "server does not let it read. The log names a newer claim: two installations use one "
            "store.",
            hold="5m",
        ),
    ),
)
