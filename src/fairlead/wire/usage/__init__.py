"""The bodies of the ledger's kept states. Specification: docs/spec/usage.md#past."""
