"""Sharing a GPU between pods: ledger, choice of cards, refusals, and the decider of bindings."""
