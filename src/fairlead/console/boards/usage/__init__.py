"""Usage, cost, idle GPUs, prices and reports, from the ledger alone (docs/spec/usage.md)."""
