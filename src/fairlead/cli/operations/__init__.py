"""Verbs about operations."""
