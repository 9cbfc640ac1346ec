"""Which kinds there are, their names, their watch log, conditions and counts."""
