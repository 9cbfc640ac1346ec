"""One module for what a kind of training job is, one for how it is written."""
