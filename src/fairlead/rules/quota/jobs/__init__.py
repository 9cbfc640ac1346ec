"""Batch Jobs under quota: which pods their controller removes, and how some are stopped."""
