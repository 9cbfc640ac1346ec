"""Nodes and their GPUs: top node, inspect, why, place."""
