"""The tables of rules and alerts."""
