"""Work on GPUs through CUDA, for the load generator: with cupy or torch, whichever is installed.

Written from their documentation and tried on a library that plays them (`tests/edge/cuda`); run on
one H100, not on two cards.
"""
