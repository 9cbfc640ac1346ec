"""How a program starts, its cluster and its servers.

The only room that imports the simulated cluster.
"""
