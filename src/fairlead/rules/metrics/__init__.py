"""Metric families by dialect: our own, arena's, DCGM's, and those of the vendor's exporters."""
