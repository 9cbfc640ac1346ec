"""Input and output: API servers, Prometheus, exporters' pages, drivers, files, clocks."""
