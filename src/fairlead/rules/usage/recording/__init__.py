"""What the usage recorder records, and how (docs/spec/usage.md#recorder)."""
