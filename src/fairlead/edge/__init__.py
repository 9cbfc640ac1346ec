"""Input and output of the real world: API servers, Prometheus, exporters' pages, drivers, files,
clocks.
"""
