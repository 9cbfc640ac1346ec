"""What annotations and ConfigMaps say of GPUs: grants, topology, draining."""
