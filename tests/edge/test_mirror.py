"""Rows in order, and rows that are kept because their object can no longer be read."""

from __future__ import annotations

from fairlead.edge.kube.reflector import Mirror
from fairlead.model.changes import changed, listed


def letters(*rows: str) -> Mirror[str]:
    mirror: Mirror[str] = Mirror(lambda row: row)
    mirror.observe(listed("letters", {row[0]: row for row in rows}))
    return mirror


def test_rows_come_in_order_and_as_one_value_until_something_changes() -> None:
    mirror = letters("b1", "a1")
    first = mirror.rows()
    assert first == ("a1", "b1")
    assert mirror.rows() is first
    mirror.observe(changed("letters", "unknown", None))
    assert mirror.rows() is first
    mirror.observe(changed("letters", "a", "a2"))
    assert mirror.rows() == ("a2", "b1")


def test_an_unreadable_object_keeps_the_row_it_had_and_a_new_one_has_none() -> None:
    mirror = letters("a1", "b1", "c1")
    mirror.observe(listed("letters", {"c": "c2"}, ["a", "never-seen"]))
    assert mirror.rows() == ("a1", "c2")
    mirror.observe(listed("letters", {}))
    assert mirror.rows() == ()
    assert len(mirror) == 0
