"""One module for each kind of training job: how it is found and written, and its own options."""
