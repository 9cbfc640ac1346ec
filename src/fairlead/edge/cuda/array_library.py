"""What the load generator needs of an array library, and which of them is here. Nothing is loaded before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from fairlead.errors import OutsideError
from fairlead.model.devices.gpu_chip import LoadCard

NANOSECONDS = 1_000_000_000


class Launch(NamedTuple):
    """Work that is ready to be given to a card.

    `run` gives it once, without waiting; `amount` is what it is worth, in floating-point operations or bytes.
    `batch`: so many are given before somebody waits.
    """

    run: Callable[[], object]
    amount: float
    batch: int


class ArrayLibrary(Protocol):
    """Each call is about one card, and is made in a thread that works for no other.

    A launch is None where the library has no such work. Any exception of the library may come out.
    """

    @property
    def name(self) -> str: ...

    def cards(self) -> Sequence[LoadCard]: ...

    def matrices(self, card: int, bits: int, size: int) -> Launch:
        """Square matrices of this size, multiplied. Of 16 bits the tensor cores do it."""
        ...

    def arithmetic(self, card: int, bits: int) -> Launch | None:
        """Multiply-adds outside of the tensor cores, on every SM."""
        ...

    def copies(self, card: int, field: int, size: int) -> Launch | None:
        """So many bytes within the card, from or to pinned memory, or from or to another card (the test's
        field).
        """
        ...

    def spin(self, card: int, seconds: float, blocks: int, threads: int) -> bool:
        """Begin a kernel that only waits. False = it cannot have this shape."""
        ...

    def wait(self, card: int) -> None:
        """Until the card has done what it was given."""
        ...


def find_array_library(makers: Sequence[tuple[str, Callable[[], ArrayLibrary]]] = ()) -> ArrayLibrary:
    """The first that is installed and sees a card. Raises OutsideError, which says why each is not it."""
    reasons = []
    for name, make in makers or _makers():
        try:
            library = make()
            if library.cards():
                return library
            reasons.append(f"{name} sees no card")
        except ModuleNotFoundError as error:
            reasons.append(f"{name} is not installed" if (error.name or "").partition(".")[0] == name else f"{name}: {error}")
        except Exception as error:  # noqa: BLE001 - what libraries raise without a driver is of many kinds
            reasons.append(f"{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
    raise OutsideError("cuda", f"no GPU can be made busy ({'; '.join(reasons)}); `--backend sim` needs none")


def _makers() -> Sequence[tuple[str, Callable[[], ArrayLibrary]]]:
    def cupy() -> ArrayLibrary:
        from fairlead.edge.cuda.cupy_library import CupyLibrary

        return CupyLibrary()

    def torch() -> ArrayLibrary:
        from fairlead.edge.cuda.torch_library import TorchLibrary

        return TorchLibrary()

    return (("cupy", cupy), ("torch", torch))


def spelled_uuid(raw: bytes) -> str:
    """Sixteen bytes as NVIDIA's driver writes them.

    >>> spelled_uuid(bytes(range(16)))
    'GPU-00010203-0405-0607-0809-0a0b0c0d0e0f'
    """
    text = raw[:16].hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"
