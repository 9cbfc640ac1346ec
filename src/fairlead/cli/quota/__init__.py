"""`fairlead quota …`: the quota tree, its usage, plans of the controller, and reasons of waiting
pods.
"""
