"""Shared by measurements: processes and their cost, clusters with objects, clients to compare."""
