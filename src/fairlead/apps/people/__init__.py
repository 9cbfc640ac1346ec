"""Servers that look after users and groups."""
