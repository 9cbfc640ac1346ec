"""The kinds of jobs: how each is read and written, one plain module per kind with the same names
in all.
"""
