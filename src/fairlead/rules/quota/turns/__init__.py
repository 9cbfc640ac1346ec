"""The order in which the units of a leaf are tried."""
