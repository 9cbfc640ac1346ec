"""The simulated cluster as a Kubernetes API server over HTTP."""
