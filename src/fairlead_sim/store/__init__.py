"""The object store: the API server without HTTP, its admission, defaults and deletion."""
