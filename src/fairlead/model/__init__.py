"""Nouns: the cluster as values (snapshot, node, pod, job, GPU, quota), and the actions on it."""
