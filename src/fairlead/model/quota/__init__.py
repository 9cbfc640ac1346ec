"""The quota tree, what quota sees of a cluster, and what a plan says of it."""
