"""Verbs about users: the one who asks, and those of the cluster with groups and credentials."""
