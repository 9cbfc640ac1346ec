"""Elastic quota trees as Kubernetes objects."""
