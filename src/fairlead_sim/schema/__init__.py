"""The forms and words of the Kubernetes API: resources, fields, validation by schema, selectors,
patches, statuses.
"""
