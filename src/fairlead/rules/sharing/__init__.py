"""Sharing a GPU between pods: ledger, choice of cards, the words of a no, and the machine that extender and laptop drive."""
