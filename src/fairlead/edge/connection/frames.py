"""Splits a stream into frames: a length in four bytes, most significant first, then the bytes.

API servers send watches in protobuf in this form. A frame that is cut off by the end of the stream
is dropped: the next watch has it again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

FRAME_BYTES_MAX: Final = 64 << 20
"""The largest accepted frame, in bytes.

An API server stores objects of at most 1.5 MiB by default.
"""
_HEAD: Final = 4
_length_at: Final = struct.Struct(">I").unpack_from


class FrameTooLong(ValueError):
    """A frame longer than any object."""


class FrameSplitter:
    def __init__(self) -> None:
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The frames that the chunk completes. Raises FrameTooLong before such a frame is stored.

        >>> splitter = FrameSplitter()
        >>> splitter.feed(b"\\0\\0\\0\\3on")
        []
        >>> splitter.feed(b"e\\0\\0\\0\\3two\\0")
        [b'one', b'two']
        >>> splitter.feed(bytes(3))
        [b'']
        """
        data = self._tail + chunk if self._tail else chunk
        frames: list[bytes] = []
        at, begin, size = 0, _HEAD, len(data)
        while begin <= size:
            (length,) = _length_at(data, at)
            if length > FRAME_BYTES_MAX:
                raise FrameTooLong(
                    f"a frame of {length} bytes is announced, at most {FRAME_BYTES_MAX} are read"
                )
            end = begin + length
            if end > size:
                break
            frames.append(data[begin:end])
            at, begin = end, end + _HEAD
        self._tail = data[at:]
        return frames


def in_groups(frames: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    """The same frames in groups; a group ends with the frame with which it reaches `size` bytes.

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
