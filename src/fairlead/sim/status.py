"""The refusals of the simulated API; the words stand in `wire/kube_status`, where the HTTP server finds them too."""

from __future__ import annotations

from fairlead.wire.kube_status import ApiStatus, FieldError, conflict, forbidden, gone, invalid, not_found

__all__ = ["ApiStatus", "FieldError", "conflict", "forbidden", "gone", "invalid", "not_found"]
