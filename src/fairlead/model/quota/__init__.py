"""The quota tree, the part of a cluster that quota reads, and the plan that follows from it."""
