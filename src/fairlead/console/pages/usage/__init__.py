"""The forms of usage and cost (docs/spec/usage.md)."""
