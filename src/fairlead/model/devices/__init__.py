"""GPUs: values that drivers and exporters report, their topology, and their errors."""
