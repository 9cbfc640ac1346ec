"""Files and annotations of a node's GPU agent and of the kubelet beside it."""
