"""The state of a training job, and why it waits."""
