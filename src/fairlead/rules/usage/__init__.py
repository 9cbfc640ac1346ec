"""What follows from the ledger: intervals to write, costs, and the cluster as it was.

Specification: docs/spec/usage.md.
"""
