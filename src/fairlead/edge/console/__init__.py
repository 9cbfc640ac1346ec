"""A console that runs, as commands ask it."""
