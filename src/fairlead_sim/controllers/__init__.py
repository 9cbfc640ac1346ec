"""Kubernetes' own controllers."""
