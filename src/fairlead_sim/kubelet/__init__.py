"""The kubelet: what a container does, when it ends, what it logs."""
