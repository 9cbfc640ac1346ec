"""When a message may be sent again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.rules.control.messages import SentMessages

TIMES = st.floats(0, 1000)


def test_it_may_be_sent_again_when_its_time_has_passed_or_the_clock_was_set_back() -> None:
    messages = SentMessages[str](60.0)
    assert messages.may_send("a", 100.0) and messages.free_at("a") < 100.0
    messages.sent("a", 100.0)
    assert [messages.may_send("a", now) for now in (99.0, 100.0, 159.9, 160.0)] == [
        True,
        False,
        False,
        True,
    ]
    assert messages.free_at("a") == 160.0
    assert messages.may_send("b", 100.0), "another message"


@given(st.lists(st.tuples(st.sampled_from("abc"), TIMES)), TIMES)
def test_forgetting_changes_no_answer(sent: list[tuple[str, float]], now: float) -> None:
    messages = SentMessages[str](60.0)
    for key, at in sent:
        messages.sent(key, at)
    before = [messages.may_send(key, now) for key in "abc"]
    messages.forget(now)
    assert [messages.may_send(key, now) for key in "abc"] == before


@given(st.lists(st.tuples(st.sampled_from("abc"), TIMES)))
def test_old_messages_are_forgotten(sent: list[tuple[str, float]]) -> None:
    """On a clock that is not set back."""
    messages = SentMessages[str](60.0)
    for key, at in sorted(sent, key=lambda each: each[1]):
        messages.sent(key, at)
        messages.forget(at)
        assert not any(messages.may_send(each, at) for each in messages)
