"""The two protocols with a node's kubelet over its sockets: device plugins, and pod resources."""
