"""How a program begins, its cluster and its servers. The only room that knows the simulated cluster."""
