"""The simulated cluster: a scenario and a seed become one history, served as a Kubernetes API."""
