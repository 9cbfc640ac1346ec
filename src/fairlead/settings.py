"""Project constants: ports, namespaces, prefixes.

Each is chosen once (design 0001) and spelled only here.

Settings of one process (addresses, intervals) are arguments of that process. Rules read only the
namespaces.
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
PEOPLE_CONTROLLER_PORT: Final = 9404
USAGE_RECORDER_PORT: Final = 9405

PART_LABEL: Final = "app.kubernetes.io/name"
CLUSTER_EXPORTER_POD: Final = "fairlead-cluster-exporter"
GPU_EXTENDER_POD: Final = "fairlead-gpushare-extender"
NODE_AGENT_POD: Final = "fairlead-node-agent"
QUOTA_CONTROLLER_POD: Final = "fairlead-quota-controller"
PEOPLE_CONTROLLER_POD: Final = "fairlead-people-controller"
USAGE_RECORDER_POD: Final = "fairlead-usage-recorder"
"""Values of the label by which the pods of Fairlead's components are found (see `deploy/`)."""

GPU_EXPORTER_LABELS: Final = f"{PART_LABEL}=fairlead-gpu-exporter"
GPU_EXPORTER_PORT_NAME: Final = "metrics"
"""Container port by which pods of GPU exporters are found (deploy/gpu-exporter.yaml)."""

USERS_NAMESPACE: Final = "kube-ai"
CONSOLE_POD: Final = "fairlead-console"
STORE_PASSWORD_KEY: Final = "store-password"
"""The key of the console's Secret with the password of its database."""
SIGN_IN_KEY_SECRET: Final = "fairlead-sign-in-key"
"""The Secret with the key of the console's cookies."""

HELM_CHART: Final = "fairlead"
"""The name of Fairlead's chart, by which releases of it are found."""

SHARE_LEASE: Final = "fairlead-gpushare"
"""The Lease of the scheduler extender that may place pods.

See docs/spec/gpu-sharing.md#recovery-and-leadership.
"""

QUOTA_LEASE: Final = "fairlead-quota"
"""The Lease of the quota controller that may write (docs/spec/quota.md#the-quota-controller)."""

PEOPLE_LEASE: Final = "fairlead-people"
"""The Lease of the people controller that may write (docs/spec/people.md#the-people-controller)."""

USAGE_RECORDER_LEASE: Final = "fairlead-usage-recorder"
"""The Lease of the usage recorder that may write (docs/spec/usage.md#recorder)."""
USAGE_READING_SECONDS: Final = 30.0
"""How often the usage recorder reads the cards: a reading counts back at most four times this."""

CLUSTER_EXPORTER_LEASE: Final = "fairlead-cluster-exporter"
"""The Lease of the cluster exporter that may print the cluster.

Specification: docs/spec/telemetry.md#cluster-exporter.
"""

CONSOLE_EXTENSION: Final = "fairlead.io/console"
"""Of a kubeconfig's cluster: `address` is that of the console."""
LAPTOP_EXTENSION: Final = "fairlead.io/laptop"
"""The extension of a cluster in a laptop's kubeconfig: addresses of its clock and its GPU values.
"""

READ_SECONDS: Final = 10.0
"""`READ_SECONDS`: time for a client to send a request, head and body together.

It applies to Fairlead's servers (docs/spec/console.md, docs/spec/telemetry.md).
"""

WRITE_SECONDS: Final = 10.0
"""`WRITE_SECONDS`: time for a scraper to read a GPU exporter's page.

Specification: docs/spec/telemetry.md#endpoints.
"""

LAPTOP_CONTEXT: Final = "fairlead"
"""The name of a laptop's context and cluster in a kubeconfig: `kubectl --context fairlead`."""

CONTEXT_BEFORE_EXTENSION: Final = "fairlead.io/context-before"
"""The extension with the context that was current before the laptop's.

A laptop that starts after a killed one makes that context current again at its end.
"""

LAPTOP_USER: Final = "fairlead-admin"

LAPTOP_AUTHORITY: Final = "fairlead laptop authority"
"""The common name of a laptop's certificate authority, which marks a laptop's entries."""

OLDEST_KUBERNETES: Final = (1, 18)
"""The oldest supported API server; an older one gets an error message.

See docs/spec/console.md#api-server-requirements, document 000.
"""
