"""Project constants: ports, namespaces, prefixes. Chosen once (design 0001), spelled here and nowhere else.

A process' own settings (addresses, intervals) are arguments of that process; of this module a rule reads the
namespaces alone.
"""

from __future__ import annotations

from typing import Final

LOOPBACK: Final = "127.0.0.1"

GPU_EXPORTER_PORT: Final = 9400
CLUSTER_EXPORTER_PORT: Final = 9401
CONSOLE_PORT: Final = 8080
API_SERVER_PORT: Final = 6443
SCHEDULER_EXTENDER_PORT: Final = 39999
QUOTA_CONTROLLER_PORT: Final = 9402
NODE_AGENT_PORT: Final = 9403

PART_LABEL: Final = "app.kubernetes.io/name"
CLUSTER_EXPORTER_POD: Final = "fairlead-cluster-exporter"
GPU_EXTENDER_POD: Final = "fairlead-gpushare-extender"
NODE_AGENT_POD: Final = "fairlead-node-agent"
QUOTA_CONTROLLER_POD: Final = "fairlead-quota-controller"
"""By what the pods of our components are known: values of that label in `deploy/`."""

GPU_EXPORTER_LABELS: Final = f"{PART_LABEL}=fairlead-gpu-exporter"
GPU_EXPORTER_PORT_NAME: Final = "metrics"
"""By what the pods of GPU exporters are found (deploy/gpu-exporter.yaml)."""

USERS_NAMESPACE: Final = "kube-ai"
SYSTEM_NAMESPACE: Final = "fairlead-system"

SHARE_LEASE: Final = "fairlead-gpushare"
"""The Lease of the scheduler extender that may place pods.

See docs/spec/gpu-sharing.md#recovery-and-leadership.
"""

QUOTA_LEASE: Final = "fairlead-quota"
"""The Lease of the quota controller that may write (docs/spec/quota.md#the-quota-controller)."""

CLUSTER_EXPORTER_LEASE: Final = "fairlead-cluster-exporter"
"""The Lease of the cluster exporter that may print the cluster (docs/spec/telemetry.md#cluster-exporter)."""

LAPTOP_EXTENSION: Final = "fairlead.io/laptop"
"""The extension of a cluster in a laptop's kubeconfig: where its time is told, and its GPU values."""

READ_SECONDS: Final = 10.0
"""How long a client of our servers may take to send a request, head and body together.

(Console and docs/spec/telemetry.mds.)
"""

WRITE_SECONDS: Final = 10.0
"""How long a scraper of a GPU exporter may take to read its page (docs/spec/telemetry.md#endpoints)."""

LAPTOP_CONTEXT: Final = "fairlead"
"""The name of a laptop's context and cluster in a kubeconfig: `kubectl --context fairlead`."""

CONTEXT_BEFORE_EXTENSION: Final = "fairlead.io/context-before"
"""The extension that names the context which was current before the laptop's.

A laptop that comes after a killed one makes it current again.
"""

LAPTOP_USER: Final = "fairlead-admin"

LAPTOP_AUTHORITY: Final = "fairlead laptop authority"
"""The common name of a laptop's certificate authority: a kubeconfig's entries of ours are known by it."""

OLDEST_KUBERNETES: Final = (1, 18)
"""The oldest API server we speak to; older ones get a sentence.

See docs/spec/console.md#api-server-requirements, document 000.
"""
