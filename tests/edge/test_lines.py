"""A stream gives the same lines, however it is cut into chunks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fairlead.edge.connection.lines import LineSplitter


@given(
    st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))),
    st.lists(st.integers(0, 400)),
    st.binary(max_size=5),
)
def test_lines_do_not_depend_on_chunks(lines: list[bytes], cuts: list[int], rest: bytes) -> None:
    stream = b"".join(line + b"\n" for line in lines) + rest.replace(b"\n", b"")
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter = LineSplitter()
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    batches = [(splitter.feed(chunk), b"\n" in chunk) for chunk in chunks]
    assert [line for batch, is_any in batches if is_any for line in batch.split(b"\n")] == lines
    assert all(batch == b"" for batch, is_any in batches if not is_any)
