"""Connections to servers: kubeconfigs, credentials, certificates, proxies, and messages for
failures.
"""
