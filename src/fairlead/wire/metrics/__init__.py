"""Prometheus text, DCGM fields, and GPU readings."""
