"""Charts: questions to Prometheus, or to the history that the server keeps itself."""
