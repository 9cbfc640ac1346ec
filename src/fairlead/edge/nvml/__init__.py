"""NVIDIA's driver on this node, as its management library NVML tells: the real world behind `CardDriver`.

Written from NVML's documented calls, structures and codes, and tried on a library that plays them
(`tests/nvml`). `make gpu-check` compares it with a real card.
"""
