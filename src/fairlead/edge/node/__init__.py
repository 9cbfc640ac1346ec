"""The agent's own node: its files, and the part of the API server that concerns the node."""
