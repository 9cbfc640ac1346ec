"""The clock of a world, and its timers."""
