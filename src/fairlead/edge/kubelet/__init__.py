"""Both conversations with a node's kubelet over its sockets: it asks for devices, it tells who holds them."""
