"""One module for each kind of training job: what it is, how it is written, its own options."""
