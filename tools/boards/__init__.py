"""The Grafana boards that are shipped: one module each.

They use the terms of `shape`; `grafana` writes their JSON.
"""
