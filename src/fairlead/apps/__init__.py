"""Servers: one module each, with its loops and its pages; they share `service` and `leader`."""
