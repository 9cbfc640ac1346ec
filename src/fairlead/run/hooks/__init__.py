"""Hooks and controllers of a simulated cluster, by the rules of a real one."""
