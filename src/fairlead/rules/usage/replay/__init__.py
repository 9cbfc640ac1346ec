"""The pods of the ledger, played through the quota plan once more (docs/spec/usage.md#replay)."""
