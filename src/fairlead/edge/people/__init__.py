"""Users and groups of a cluster, as the API server has them."""
