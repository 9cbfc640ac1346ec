"""The records of operations, as ConfigMaps."""
