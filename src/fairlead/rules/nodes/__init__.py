"""A node's properties: its status, its mode of GPU sharing, what its pods request, and which pods
may use it.
"""
