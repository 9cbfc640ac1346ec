"""The boards as a researcher sees them: the own namespaces, and the cluster's capacity."""
