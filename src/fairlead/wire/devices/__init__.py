"""Values that NVIDIA's driver and kernel module report of a card, as DCGM fields and as XIDs."""
