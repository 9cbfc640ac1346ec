"""One follower of the API server: which kinds are followed, and how their changes are reported."""
