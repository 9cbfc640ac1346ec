"""The servers of a real cluster: each kind in a module of its own, which imports what that kind
needs.
"""
