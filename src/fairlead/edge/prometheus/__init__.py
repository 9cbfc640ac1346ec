"""Prometheus and exporters as sources of GPU readings and charts."""
