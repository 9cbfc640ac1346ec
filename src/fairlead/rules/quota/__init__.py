"""Elastic quota: which pods count against a quota, which units are admitted, and which pods are
evicted.
"""
