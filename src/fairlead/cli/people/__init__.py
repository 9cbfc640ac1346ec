"""Verbs about the person who asks."""
