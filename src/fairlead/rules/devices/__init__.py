"""A node's GPUs: ids, modes, health, what containers get, and which pod a device's series belong
to.
"""
