"""Sharing a GPU between pods: ledger, choice of cards, refusals, and the state machine of all of it."""
