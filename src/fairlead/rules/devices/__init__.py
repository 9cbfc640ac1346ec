"""The node's side of its GPUs: ids, modes, health, what containers get; and whose name a series has."""
