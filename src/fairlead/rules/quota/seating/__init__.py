"""Where the units of a quota plan sit on the cluster's nodes, and who leaves a node for one."""
