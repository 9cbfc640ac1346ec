"""Kubernetes objects and protocols as its API spells them."""
