"""Servers: one module each, with its loops and its pages; `service` and `leader` are shared by
them.
"""
