"""One module for each kind of training job: what it is, how it is written, and what only it can be asked for."""
