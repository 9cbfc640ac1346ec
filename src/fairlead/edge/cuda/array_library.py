"""The interface of array libraries for the load generator, and the choice of an installed one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from fairlead.errors import OutsideError
from fairlead.model.devices.gpu_chip import LoadCard

NANOSECONDS = 1_000_000_000


class Launch(NamedTuple):
    """Work that is ready to be given to a card.

    `run` starts it once without waiting; `amount`: its size, in floating-point operations or bytes.
    `batch`: the number of starts before the caller waits.
    """

    run: Callable[[], object]
    amount: float
    batch: int


class ArrayLibrary(Protocol):
    """Each call is for one card, and is made in a thread that works for no other card.

    A launch is None if the library has no such work. Any exception of the library may be raised.
    """

    @property
    def name(self) -> str: ...

    def cards(self) -> Sequence[LoadCard]: ...

    def matrices(self, card: int, bits: int, size: int) -> Launch:
        """Multiplication of square matrices of this size; with 16 bits on the tensor cores."""
        ...

    def arithmetic(self, card: int, bits: int) -> Launch | None:
        """Multiply-adds outside the tensor cores, on every SM."""
        ...

    def copies(self, card: int, field: int, size: int) -> Launch | None:
        """Copies of `size` bytes within the card, from or to pinned memory, or from or to
        another card, by the test's field.
        """
        ...

    def spin(self, card: int, seconds: float, blocks: int, threads: int) -> bool:
        """Starts a kernel that only waits. False = it cannot have this shape."""
        ...

    def wait(self, card: int) -> None:
        """Waits until the card has done its work."""
        ...


def find_array_library(
    makers: Sequence[tuple[str, Callable[[], ArrayLibrary]]] = (),
) -> ArrayLibrary:
    """The first library that is installed and finds a card.

    Raises OutsideError with the reason for each.
    """
    reasons = []
    for name, make in makers or _makers():
        try:
            library = make()
            if library.cards():
                return library
            reasons.append(f"{name} sees no card")
        except ModuleNotFoundError as error:
            reasons.append(
                f"{name} is not installed"
                if (error.name or "").partition(".")[0] == name
                else f"{name}: {error}"
            )
        except Exception as error:  # noqa: BLE001 - libraries raise many types without a driver
            reasons.append(
                f"{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
            )
    raise OutsideError(
        "cuda", f"no GPU can be made busy ({'; '.join(reasons)}); `--backend sim` needs none"
    )


def _makers() -> Sequence[tuple[str, Callable[[], ArrayLibrary]]]:
    def cupy() -> ArrayLibrary:
        from fairlead.edge.cuda.cupy_library import CupyLibrary

        return CupyLibrary()

    def torch() -> ArrayLibrary:
        from fairlead.edge.cuda.torch_library import TorchLibrary

        return TorchLibrary()

    return (("cupy", cupy), ("torch", torch))


def spelled_uuid(raw: bytes) -> str:
    """Sixteen bytes in the format of NVIDIA's driver.

    >>> spelled_uuid(bytes(range(16)))
    'GPU-00010203-0405-0607-0809-0a0b0c0d0e0f'
    """
    text = raw[:16].hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"
