"""Rules about containers on GPUs, and about who reports: exporters and nodes.

See docs/spec/telemetry.md#recording-rules-and-alerts.
"""

from __future__ import annotations

from typing import Final

from alerts.gpu import NOT_WITHOUT_DRIVER
from alerts.rule import Alert, Group, Recording

NEAR_RATIO: Final = 0.95
OVER_RATIO: Final = 1.05
STALE_SECONDS: Final = 60
POD_MAP_SECONDS: Final = 120

_WHO: Final = (
    "{{ $labels.container_name }} of pod {{ $labels.namespace_name }}/{{ $labels.pod_name }}"
)
_SHARE: Final = 'fairlead:container_gpu_memory_used:ratio{allocate_mode="share"}'
_UNKNOWN: Final = (
    "max by (node_name, namespace_name, pod_name, container_name) "
    "(fairlead_container_gpu_unknown_allocators_total) > 0"
)
"""One alert for each container: a look-up counts on each of its cards. No increase is asked for,
because a program looks functions up when it starts, before the counter is read at 0.
"""
_NOT_OF_A_LOST_CARD: Final = "unless on (node_name, gpu) fairlead_gpu_up == 0"
_NO_POD_MAP: Final = (
    f"fairlead_exporter_pod_map_age_seconds > {POD_MAP_SECONDS} or on (node_name) "
    '(fairlead_exporter_collector_success{collector="podmap"} == 0 unless on (node_name) '
    "fairlead_exporter_pod_map_age_seconds)"
)
"""A kubelet that never answered has no age."""
_FAILS: Final = (
    '(fairlead_exporter_collector_success{collector!="podmap"} == 0 or '
    '(fairlead_exporter_collector_success{collector="podmap"} == 0 and on (node_name) '
    f"fairlead_exporter_pod_map_age_seconds <= {POD_MAP_SECONDS}))"
)
"""What PodMapStale reports is left to it."""
_LAST_READ: Final = (
    'fairlead_exporter_collector_last_success_timestamp_seconds{collector="device", gpu!=""}'
)
_OLD: Final = (
    f"(max by (node_name, gpu) (fairlead_exporter_sample_age_seconds) > {STALE_SECONDS}"
    f" or max by (node_name, gpu) (time() - {_LAST_READ}) > {STALE_SECONDS})"
)
"""Cards with stale readings: by the exporter's age of them, or by the time of the last reading.

An age is as old as its page: of an exporter that hangs only the time of the reading is certain.
"""
_LOGS: Final = (
    "$ kubectl -n fairlead-nodes logs -l app.kubernetes.io/name=fairlead-gpu-exporter --prefix "
    "--tail=50"
)
_PODS: Final = (
    "$ kubectl -n fairlead-nodes get pods -o wide -l app.kubernetes.io/name=fairlead-gpu-exporter"
)

CONTAINERS: Final = Group(
    "fairlead-container",
    "Containers on shared cards",
    (
        Recording(
            "fairlead:container_gpu_memory_used:ratio",
            "fairlead_container_gpu_memory_used_bytes / fairlead_container_gpu_memory_limit_bytes",
            "Used part of the memory that a container was granted.",
        ),
    ),
    (
        Alert(
            "ContainerNearLimit",
            f"{_SHARE} > {NEAR_RATIO}",
            "info",
            "Container {{ $labels.container_name }} has used up its GPU memory",
            f"Container {_WHO} uses {{{{ $value | humanizePercentage }}}} of the memory it was "
            "granted on GPU {{ $labels.gpu }} of {{ $labels.node_name }}. Its next "
            "allocation may fail.",
            (
                "A container on a shared card is close to the memory it was granted. Where the "
                "guard runs, its next allocation fails."
            ),
            (
                'fairlead_container_gpu_memory_used_bytes{namespace_name="NAMESPACE",pod_name="POD"}',
            ),
            (
                "Advise its owner to ask for more `aliyun.com/gpu-mem`, or to let the framework "
                "allocate less."
            ),
            hold="10m",
        ),
        Alert(
            "ContainerOverGrant",
            f"{_SHARE} > {OVER_RATIO}",
            "critical",
            "Container {{ $labels.container_name }} takes GPU memory of others",
            f"Container {_WHO} uses {{{{ $value | humanizePercentage }}}} of the memory it was "
            "granted on GPU {{ $labels.gpu }} of {{ $labels.node_name }}: its neighbours "
            "may run out of memory. End it, or give it a card of its own.",
            (
                "A container uses more of a shared card than it was granted; nothing on this node "
                "keeps it from that."
            ),
            (
                f"{_SHARE} > 1",
                'fairlead_container_gpu_memory_used_bytes{node_name="NODE",gpu="INDEX"}',
                "$ kubectl -n NAMESPACE describe pod POD",
            ),
            "Inform its owner, and delete the pod if its neighbours fail. Whether the node can "
            "enforce grants is described in [gpu-node.md](../how-to/gpu-node.md).",
            hold="1m",
        ),
        Alert(
            "GuardUnknownAllocator",
            _UNKNOWN,
            "warning",
            "Container {{ $labels.container_name }} looks up an allocator that the memory guard "
            "does not know",
            f"Container {_WHO} on {{{{ $labels.node_name }}}} has looked up {{{{ $value }}}} "
            "times a function of the driver that looks like an allocator and that the memory "
            "guard does not know. Memory that it allocates so does not count against its grant.",
            "The memory guard is a cooperative quota with a list of the driver's allocators. A "
            "program has asked the driver for a function that is named like an allocator and is "
            "not in this list, usually after an update of the driver or of CUDA. The function "
            "works; its memory is neither limited nor accounted.",
            (
                'fairlead_container_gpu_unknown_allocators_total{namespace_name="NAMESPACE",'
                'pod_name="POD"}',
                "fairlead_gpushare_over_grant_bytes > 0",
                "$ kubectl inspect cgpu -o wide",
            ),
            "Look whether the container uses more than its grant: the watchdog of the node agent "
            "reports that as the Event `GPUMemoryOverGrant`. Upgrade Fairlead if a newer version "
            "knows the driver, else report the versions of driver and CUDA. The alert ends with "
            "the container.",
        ),
    ),
)

EXPORTERS: Final = Group(
    "fairlead-node",
    "Nodes and exporters",
    (),
    (
        Alert(
            "ExporterMissing",
            "fairlead_node_gpus > 0 unless on (node_name) fairlead_exporter_nvml_up == 1",
            "critical",
            "No exporter reports the GPUs of {{ $labels.node_name }}",
            "{{ $labels.node_name }} has {{ $value }} GPUs and for five minutes no exporter of it "
            "has reached NVIDIA's driver. Look at the exporter's pod there, and at the driver.",
            "The exporter's pod does not run or is not scraped on that node, or it runs and finds "
            "no driver (`fairlead_exporter_nvml_up` 0). Nothing is known of the node's cards.",
            (_PODS, _LOGS, 'fairlead_exporter_nvml_up{node_name="NODE"}'),
            "No pod on the node: its labels do not match "
            "([gpu-exporter.md](../how-to/gpu-exporter.md)). It runs and `nvml_up` is 0: the "
            "driver is missing, was updated without a restart, or the runtime does not hand it "
            "in. It runs and Prometheus has nothing: look at the target's error in Prometheus.",
            hold="5m",
            but_not=("unless on (node_name) fairlead_node_ready < 1",),
        ),
        Alert(
            "ClusterExporterMissing",
            "absent(fairlead_cluster_gpu_nodes)",
            "critical",
            "No exporter reports the cluster",
            "For five minutes no cluster exporter has reported the number of GPU nodes. Meanwhile "
            "there are no alerts about nodes that are not ready, about missing exporters, about "
            "quotas and about jobs. Look at the cluster exporter's pods.",
            "No series of the cluster exporter: its pods do not run or are not scraped, none of "
            "them has the Lease, or the API server does not let it read nodes. Alerts of nodes, "
            "quotas and jobs read its series and cannot fire meanwhile; those of cards go on. It "
            "suppresses no other alert. If no cluster exporter is meant to run, remove this rule.",
            (
                (
                    "$ kubectl -n fairlead-system get pods -o wide -l "
                    "app.kubernetes.io/name=fairlead-cluster-exporter"
                ),
                (
                    "$ kubectl -n fairlead-system logs -l "
                    "app.kubernetes.io/name=fairlead-cluster-exporter --prefix --tail=50"
                ),
                "$ kubectl -n fairlead-system get lease fairlead-cluster-exporter -o yaml",
                "fairlead_exporter_leader",
            ),
            "No target in Prometheus: `deploy/prometheus` was not applied, or its labels are not "
            "those that your Prometheus selects. Pods run and `fairlead_exporter_leader` is 0 "
            "everywhere: the Lease is held by one that is gone, or cannot be written. A leader "
            "that reports no nodes: `fairlead_exporter_source_up` names what it cannot read.",
            hold="5m",
        ),
        Alert(
            "GpuNodeNotReady",
            "fairlead_node_ready < 1",
            "critical",
            "GPU node {{ $labels.node_name }} is not ready",
            "{{ $labels.node_name }} has not been ready for five minutes: its GPUs take no work, "
            "and its pods are moved or stuck. Look at its kubelet.",
            (
                "The node's Ready condition is not True. There is no second alert about its "
                "exporter: this one is about the whole node."
            ),
            ("$ kubectl describe node NODE", 'fairlead_gpu_pod_info{node_name="NODE"}'),
            "Look at the machine, its kubelet and its network. Pods that hang in Terminating hold "
            "their quota and their cards until they are gone: once the machine is off for "
            "certain, delete the node.",
            hold="5m",
        ),
        Alert(
            "ExporterCollectorFailing",
            _FAILS,
            "warning",
            "Collector {{ $labels.collector }} fails on {{ $labels.node_name }}",
            "Collector {{ $labels.collector }} (GPU {{ $labels.gpu }}, none = of the whole node) "
            "of {{ $labels.node_name }} has failed for five minutes: what it reads is missing. "
            "`fairlead_exporter_collector_errors_total` names the error.",
            (
                "One of the exporter's readings fails; only its own values are missing. "
                "FairleadGpuDown reports the collectors of a lost card."
            ),
            ('fairlead_exporter_collector_errors_total{node_name="NODE"}', _LOGS),
            "Follow the error: `podmap` is the kubelet's socket, `kmsg` the kernel's log, "
            "`processes` the pids of the node (`hostPID: true`), the others are the driver.",
            hold="5m",
            but_not=(_NOT_OF_A_LOST_CARD, NOT_WITHOUT_DRIVER),
        ),
        Alert(
            "ExporterStale",
            _OLD,
            "warning",
            "Values of GPU {{ $labels.gpu }} of {{ $labels.node_name }} are old",
            "GPU {{ $labels.gpu }} of {{ $labels.node_name }} was last read {{ $value | "
            "humanizeDuration }} ago. Look at the exporter's log.",
            "A card has not been read for more than a minute. FairleadGpuDown reports a lost card "
            "and a call that hangs, and holds this alert back in Alertmanager; what is left is an "
            "exporter that stands still or falls behind: its page shows that all is well, and is "
            "old. Or the clock of the node is wrong.",
            (
                "time() - fairlead_exporter_collector_last_success_timestamp_seconds"
                '{node_name="NODE"}',
                'fairlead_exporter_cycle_duration_seconds{node_name="NODE"}',
                'fairlead_exporter_stuck_calls{node_name="NODE"}',
                _LOGS,
            ),
            "Check whether the node has CPU left; an exporter with a CPU limit starves. Delete "
            "its pod if it does not come back by itself (its `/healthz` should have seen to "
            "that). A `--collect-interval` above a minute is not meant for these rules.",
            hold="5m",
            but_not=(NOT_WITHOUT_DRIVER,),
        ),
        Alert(
            "PodMapStale",
            _NO_POD_MAP,
            "warning",
            "The exporter of {{ $labels.node_name }} does not know who has the GPUs",
            "The kubelet of {{ $labels.node_name }} has not reported for minutes, or ever, which "
            "pods have which GPUs: series have no pods. Look at the exporter's log and the "
            "kubelet's socket.",
            "The list of pods and devices is old, or there never was one. Series of devices stay, "
            "those of containers go after the map's time to live.",
            ('fairlead_exporter_pod_map_errors_total{node_name="NODE"}', _LOGS),
            "Is the kubelet's directory of pod resources mounted into the exporter's pod? Does "
            "the kubelet answer others? Restart the exporter's pod after a kubelet was moved.",
            hold="5m",
        ),
        Alert(
            "ExporterRowsRejected",
            "fairlead_exporter_config_rows_rejected > 0",
            "warning",
            "The GPU exporter of {{ $labels.node_name }} skips rows of its counters file",
            "The GPU exporter of {{ $labels.node_name }} skips {{ $value }} rows of its counters "
            "file: boards and alerts that need these metrics are empty. Its log has the rows, and "
            "why.",
            "The counters file, or the ConfigMap, names fields that the exporter does not serve, "
            "or has malformed rows. The other rows are printed.",
            ('fairlead_exporter_config_rows_rejected{node_name="NODE"}', _LOGS),
            (
                "Correct or remove the rows. [dcgm-fields.md](dcgm-fields.md) lists the fields "
                "that are served, and why others are not."
            ),
            hold="5m",
        ),
        Alert(
            "ExporterReloadFailed",
            "fairlead_exporter_config_last_reload_success == 0",
            "warning",
            "The GPU exporter of {{ $labels.node_name }} works with old counters",
            "The GPU exporter of {{ $labels.node_name }} could not read its counters file again "
            "and goes on with the last good one. Its log shows why.",
            "The counters file, or the ConfigMap, is gone, cannot be read, or has no row that "
            "counts. What was printed before is still printed; after a restart of the exporter it "
            "might not be.",
            ('fairlead_exporter_config_last_reload_success{node_name="NODE"}', _LOGS),
            (
                "Repair the file or the ConfigMap. The exporter looks at a file every second, at "
                "a ConfigMap every 30 s."
            ),
            hold="5m",
        ),
    ),
)
