"""Which cluster nodes the units of a quota plan use, and which pods leave a node for a unit."""
