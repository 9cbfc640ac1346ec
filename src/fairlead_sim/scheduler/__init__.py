"""kube-scheduler: rooms, affinity, spread, preemption, and the hooks for an extender."""
