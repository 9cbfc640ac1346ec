"""Verbs about usage and cost (docs/spec/usage.md#commands)."""
