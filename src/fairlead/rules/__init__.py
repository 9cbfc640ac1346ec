"""Rules: pure functions from a snapshot and `now` to an answer.

ARCHITECTURE.md has rooms and arrows.
"""
