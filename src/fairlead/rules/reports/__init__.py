"""Reports for arena and the cluster's metrics: nodes, jobs, serving jobs and the whole cluster."""
