"""The memory guard's account of one GPU, as pure values: the oracle of the C code in `native/`."""
