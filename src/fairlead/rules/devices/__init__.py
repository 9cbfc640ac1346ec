"""A node's GPUs: ids, modes, health, what containers get, and the pods of a device's series."""
