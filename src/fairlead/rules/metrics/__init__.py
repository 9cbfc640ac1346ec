"""Metric families, by the dialect in which they are told."""
