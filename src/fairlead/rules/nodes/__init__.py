"""What a node is and offers: its status, its mode of GPU sharing, what is asked of it, and who may use it."""
