"""The types of changes that a watch reports: an object was added, modified or deleted."""

from __future__ import annotations

from enum import StrEnum


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
