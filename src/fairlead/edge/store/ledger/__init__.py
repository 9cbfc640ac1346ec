"""The usage ledger in the store (docs/spec/usage.md)."""
