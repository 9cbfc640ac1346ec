"""GPUs: their load, their readings, who runs on them."""
