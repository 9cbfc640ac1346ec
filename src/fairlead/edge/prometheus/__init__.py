"""Prometheus and exporters' pages as sources of GPU readings and charts."""
