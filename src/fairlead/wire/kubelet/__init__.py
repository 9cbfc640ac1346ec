"""Files between a node's kubelet, its GPU agent, the container runtime and the memory guard."""
