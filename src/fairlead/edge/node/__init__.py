"""The agent's own node: its files there, and the API server as far as that node goes."""
