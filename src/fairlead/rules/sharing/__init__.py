"""Sharing a GPU between pods: ledger, choice of cards, refusals, and the machine that is driven."""
