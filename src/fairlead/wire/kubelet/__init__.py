"""Files that a node's kubelet, GPU agent, container runtime and memory guard share."""
