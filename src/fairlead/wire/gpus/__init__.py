"""GPUs in annotations, ConfigMaps and files: grants, topology, draining, load."""
