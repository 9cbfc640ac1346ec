"""GPUs: what drivers and exporters say of them, how they are wired, and the errors they report."""
