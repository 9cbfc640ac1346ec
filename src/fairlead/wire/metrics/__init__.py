"""The Prometheus text format, DCGM fields, and GPU readings."""
