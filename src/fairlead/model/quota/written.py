"""What admission sees of an object that somebody writes, and who writes it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.resources import NOTHING, Amounts


class Writer(Struct, frozen=True):
    """Who asks the API server, as it knows him."""

    user: str
    groups: tuple[str, ...] = ()


class Written(Struct, frozen=True):
    """A pod as it is written, or a Binding, or the owner of pods: these have labels and annotations alone.

    `requests`: what its containers that stay ask for together, or the whole pod where that is said (what a
    resize can change).
    """

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    gates: tuple[str, ...] = ()
    node: str = ""
    requests: Amounts = NOTHING
