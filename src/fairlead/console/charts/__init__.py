"""Charts: named queries, answered by Prometheus or by the history that the server keeps itself."""
