"""What a node is and offers: its status, its mode of GPU sharing, what it is asked for, and who may use it."""
