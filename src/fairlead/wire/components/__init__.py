"""Components in a cluster: their inventories, and what is seen of their programs."""
