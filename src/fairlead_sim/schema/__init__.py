"""The forms and words of the Kubernetes API.

Resources, fields, validation by schema, selectors, patches, statuses.
"""
