"""The servers of a real cluster.

Each kind is in a module of its own, which imports what that kind needs.
"""
