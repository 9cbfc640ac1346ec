"""The kinds of jobs: how each is read and written.

One plain module per kind, with the same names in all.
"""
