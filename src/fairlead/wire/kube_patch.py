"""What does an object become under a patch?

Three dialects of the API: JSON merge patch (RFC 7386), JSON patch (RFC 6902), and Kubernetes' strategic merge, which merges lists of
objects by a key instead of replacing them. Nothing here changes its arguments: unchanged parts are shared with the result.
"""

from __future__ import annotations

from typing import Any


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces.

    >>> apply_merge_patch({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), value)
    return merged
