"""What arena and the cluster's metrics tell of nodes, jobs, serving jobs and the whole cluster."""
