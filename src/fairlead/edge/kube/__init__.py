"""The Kubernetes API: requests, lists, watches, streams, and what it is asked to do."""
