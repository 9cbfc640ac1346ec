"""Cookies, their ends, tries, and where a browser goes afterwards."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from fairlead.model.records.sign_ins import SignIn, SignInWay
from fairlead.rules.people.sign_in import (
    ID_BYTES,
    IDLE_MS,
    LONGEST_MS,
    OIDC_SECONDS,
    TRIES_MAX,
    TRIES_SECONDS,
    Tries,
    csrf_of,
    derived,
    hash_of,
    is_over,
    local_path,
    new_state,
    read_cookie,
    signed_cookie,
    state_ends_at,
)

BEGAN = 1_000_000_000_000
ROW = SignIn("h", "bob", "bob", SignInWay.TOKEN, BEGAN, BEGAN, BEGAN + LONGEST_MS, "c")
ids = st.binary(min_size=ID_BYTES, max_size=ID_BYTES)
keys = st.binary(min_size=32, max_size=32)


@given(ids, keys, keys)
def test_a_cookie_is_read_by_its_key_alone(id: bytes, key: bytes, other: bytes) -> None:
    read = read_cookie(signed_cookie(id, key), (other, key))
    assert read is not None
    assert (read.id, read.key) == (id, other if other == key else key)
    assert other == key or read_cookie(signed_cookie(id, key), (other,)) is None


@given(ids, keys, st.data())
def test_a_cookie_with_one_other_character_is_none(
    id: bytes, key: bytes, data: st.DataObject
) -> None:
    cookie = signed_cookie(id, key)
    at = data.draw(st.integers(0, len(cookie) - 1))
    changed = cookie[:at] + data.draw(st.characters()) + cookie[at + 1 :]
    assert changed == cookie or read_cookie(changed, (key,)) is None


@given(st.text())
def test_any_text_may_be_a_cookie(text: str) -> None:
    assert read_cookie(text, (b"k" * 32,)) is None


@given(ids)
def test_what_is_shown_and_stored_does_not_have_the_id(id: bytes) -> None:
    assert len({id.hex(), hash_of(id), csrf_of(id)}) == 3
    assert derived(b"k" * 32, "nonce", "s") != derived(b"k" * 32, "verifier", "s")


def test_a_sign_in_is_over_when_it_is_not_used_and_when_its_day_is_over() -> None:
    assert not is_over(ROW, BEGAN + IDLE_MS - 1)
    assert is_over(ROW, BEGAN + IDLE_MS)
    used = structs.replace(ROW, seen_at=BEGAN + LONGEST_MS - 1)
    assert not is_over(used, BEGAN + LONGEST_MS - 1)
    assert is_over(used, BEGAN + LONGEST_MS)


def test_a_state_has_the_time_in_which_it_is_good() -> None:
    state = new_state(b"r" * 32, BEGAN)
    assert len(state) == ID_BYTES
    assert state_ends_at(state) == BEGAN + 1000 * OIDC_SECONDS


def test_failures_of_a_minute_count_and_a_success_does_not() -> None:
    tries = Tries()
    for second in range(TRIES_MAX):
        assert tries.wait("a", second) == 0
        tries.failed("a", second)
    assert tries.wait("a", 30) == TRIES_SECONDS - 30
    assert tries.wait("b", 30) == 0
    assert tries.wait("a", TRIES_SECONDS) == 0, "the first one is a minute ago"
    tries.failed("b", 0)
    tries.succeeded("b")
    for _ in range(TRIES_MAX - 1):
        tries.failed("b", 1)
    assert tries.wait("b", 1) == 0


def test_a_clock_that_is_set_back_locks_no_client_out() -> None:
    tries = Tries()
    for _ in range(TRIES_MAX):
        tries.failed("a", 1000.0)
    assert tries.wait("a", 10.0) == 0


@given(
    st.text(alphabet="/\\.:%#?@ab \n\t\x00é", max_size=20)
    | st.sampled_from(
        ("https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/%2f")
    )
)
def test_a_browser_stays_at_the_console(text: str) -> None:
    """As a browser resolves it: the host of the console is the host afterwards."""
    path = local_path(text)
    for console in ("https://gpu.example/", "https://gpu.example/sub/"):
        address = urljoin(console, path)
        assert urlsplit(address).netloc == "gpu.example"
    assert path.startswith("/") and not path.startswith("//")


def test_pages_of_the_console_are_kept() -> None:
    for page in ("/", "/jobs?job_status=Pending&sort=-gpusRequested", "/jobs/a/mpijob/b?tab=logs"):
        assert local_path(page) == page
