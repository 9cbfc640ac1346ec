"""NVIDIA's driver on this node through its library NVML: the real `CardDriver` and `Devices`.

Written from NVML's documented calls, structures and codes, and tried on a library that plays them
(`tests/nvml`). `make gpu-check` compares it with a real card.
"""
