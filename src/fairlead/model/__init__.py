"""The nouns: the cluster as values (snapshot, node, pod, job, GPU, quota), and what can be done to it."""
