"""Connections to servers: kubeconfigs, credentials, certificates, proxies, messages of failures."""
