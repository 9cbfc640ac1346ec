"""Nouns: the cluster as values (snapshot, node, pod, job, GPU, quota), and the actions that change
it.
"""
