"""GPUs: their load, their readings, the containers on them."""
