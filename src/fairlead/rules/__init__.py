"""Rules: pure functions from a snapshot and `now` to an answer (README.md has the words and invariants)."""
