"""Tests of the C parts: the memory guard on a stub of NVIDIA's driver."""
