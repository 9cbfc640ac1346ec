"""The Grafana boards that are shipped: one module each, in terms of `shape`; `grafana` writes their
JSON.
"""
