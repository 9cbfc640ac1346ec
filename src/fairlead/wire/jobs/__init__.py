"""Training and serving jobs as their operators spell them."""
