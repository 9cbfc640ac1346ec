"""The Kubernetes API: requests, lists, watches, streams, and actions."""
