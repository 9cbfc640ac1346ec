"""Splits a stream into frames: four bytes of length, most significant first, and so many bytes.

So API servers send watches in protobuf. A frame cut off by the end of the stream is never given out: a watch
asks for it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

FRAME_BYTES_MAX: Final = 64 << 20
"""An API server keeps objects of 1.5 MiB at most, unless it is told otherwise."""
_HEAD: Final = 4


class FrameTooLong(ValueError):
    """A length that no object has."""


class FrameSplitter:
    def __init__(self) -> None:
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that the chunk completes. Raises FrameTooLong, before anything of such a frame is kept.

        >>> splitter = FrameSplitter()
        >>> splitter.feed(b"\\0\\0\\0\\3on"), splitter.feed(b"e\\0\\0\\0\\3two\\0"), splitter.feed(bytes(3))
        ([], [b'one', b'two'], [b''])
        """
        data = self._tail + chunk if self._tail else chunk
        frames: list[bytes] = []
        at = 0
        while len(data) >= at + _HEAD:
            length = int.from_bytes(data[at : at + _HEAD], "big")
            if length > FRAME_BYTES_MAX:
                raise FrameTooLong(f"a frame of {length} bytes is announced, at most {FRAME_BYTES_MAX} are read")
            end = at + _HEAD + length
            if end > len(data):
                break
            frames.append(data[at + _HEAD : end])
            at = end
        self._tail = data[at:]
        return frames


def in_groups(frames: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    """The same frames, some at a time: a group ends with the frame that makes it `size` bytes.

    >>> list(in_groups([b"one", b"two", b"three"], 4))
    [[b'one', b'two'], [b'three']]
    """
    begin = held = 0
    for place, frame in enumerate(frames):
        held += len(frame)
        if held >= size:
            yield frames[begin : place + 1]
            begin, held = place + 1, 0
    if begin < len(frames):
        yield frames[begin:]
