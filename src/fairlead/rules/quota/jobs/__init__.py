"""Batch Jobs under quota: which pods their controller removes, and what is written to stop some of
them.
"""
