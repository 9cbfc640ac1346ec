"""What a watch tells of an object: that it is there, that it is another now, or that it is gone."""

from __future__ import annotations

from enum import StrEnum


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
