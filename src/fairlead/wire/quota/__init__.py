"""Elastic quota trees as Kubernetes objects spell them."""
