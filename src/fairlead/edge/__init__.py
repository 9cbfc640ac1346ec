"""The real world: API servers, Prometheus, exporters' pages, files and clocks of this machine."""
