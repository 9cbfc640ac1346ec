"""What arena and the console tell of nodes, jobs, serving jobs and the cluster."""
