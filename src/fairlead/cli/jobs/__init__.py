"""Training jobs: list, get, logs, attach, top, scale, delete."""
