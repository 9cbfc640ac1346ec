"""Kubernetes objects and protocols in the formats of its API."""
