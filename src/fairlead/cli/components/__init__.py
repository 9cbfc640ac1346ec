"""Verbs about components."""
