"""Elastic quota: which pods count against a quota, which are admitted, and which are evicted."""
