"""Metric families by dialect: of Fairlead, of arena, of DCGM and of the vendor's exporters."""
