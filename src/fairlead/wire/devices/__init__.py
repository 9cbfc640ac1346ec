"""What NVIDIA's driver and kernel module say of a card, as DCGM's fields and as reports."""
