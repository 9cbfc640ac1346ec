"""What the usage ledger keeps, and what is asked of it. Specification: docs/spec/usage.md.

Times are milliseconds UTC, GPUs millionths of a GPU, CPU thousandths of a core, memory MiB, money
millionths of the currency's unit. Integrals are amounts times milliseconds, as integers.
"""
