"""NVML in this process: loads, initialises, ends and unloads it, and explains its errors.

It is unloaded whenever it ends. A loaded library belongs to the driver of the time when it was
loaded: after an upgrade it returns "version mismatch" for ever, and the loader finds it by its name
before any file. `pynvml` keeps one library per process, with pointers into it.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from typing import Final, TypeVar

import pynvml
from pynvml import NVMLError

from fairlead.errors import OutsideError

LIBRARY: Final = "libnvidia-ml.so.1"
SYSTEM: Final = "nvml"
Answer = TypeVar("Answer")

_MEND: Final = {
    pynvml.NVML_ERROR_UNINITIALIZED: (
        "it is begun anew by itself; if that does not help, look at the kernel's log"
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        "load NVIDIA's kernel module on this node: `modprobe nvidia`"
    ),
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "install NVIDIA's driver on this node, whole",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "library and kernel module are of two drivers: reboot the node"
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: "run as root, with the devices `/dev/nvidia*`",
}
_GONE: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
_UNLOADED: Final = frozenset(
    {pynvml.NVML_ERROR_DRIVER_NOT_LOADED, pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH}
)
_DOWN: Final = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED})
_UNSUPPORTED: Final = frozenset(
    {pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}
)
_SILENT: Final = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NOT_FOUND,
        pynvml.NVML_ERROR_NO_DATA,
        pynvml.NVML_ERROR_NOT_READY,
    }
)


def open_library(name: str) -> None:
    """Loads and initialises NVML. Raises OutsideError; nothing is left loaded then.

    A machine without a GPU is no error.
    """
    if pynvml.nvmlLib is not None:
        raise RuntimeError("NVML is open in this process already")
    try:
        pynvml.nvmlLib = ctypes.CDLL(name)
    except OSError as error:
        hint = (
            "install NVIDIA's driver, or give this container the driver's libraries (runtime "
            "class `nvidia`)"
        )
        raise OutsideError(SYSTEM, f"`{name}` cannot be loaded: {error}", hint) from error
    try:
        pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)
    except NVMLError as error:
        reason = failure(error)  # before unloading, because the text is in the library
        _unload()
        raise reason from error


def close_library() -> None:
    """Ends and unloads NVML. No call may be under way."""
    with contextlib.suppress(NVMLError):  # it may have ended by itself
        pynvml.nvmlShutdown()
    _unload()


def _unload() -> None:
    loaded, pynvml.nvmlLib = pynvml.nvmlLib, None
    pynvml._nvmlGetFunctionPointer_cache.clear()
    close = ctypes.CDLL(None).dlclose
    close.argtypes = [ctypes.c_void_p]
    close(loaded._handle)


def failure(error: NVMLError) -> OutsideError:
    """The error for the agent, with a hint."""
    return OutsideError(
        SYSTEM,
        f"NVIDIA's driver does not answer: {words(error)}",
        _MEND.get(error.value, "look at `nvidia-smi` on this node"),
    )


def words(error: NVMLError) -> str:
    """NVML's text, or the code if it has no text.

    >>> words(NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)), words(NVMLError(12345))
    ('GPU is lost', 'NVML Error with code 12345')
    """
    return str(error)


def is_gone(error: NVMLError) -> bool:
    """Whether there is no driver behind the library any more: it must be initialised again."""
    return error.value in _GONE


def is_unloaded(failure: BaseException) -> bool:
    """Whether the driver was unloaded or replaced: every card has then been reset."""
    error = failure if isinstance(failure, NVMLError) else failure.__cause__
    return isinstance(error, NVMLError) and error.value in _UNLOADED


def is_down(error: NVMLError) -> bool:
    """Whether this card is lost or waits for a reset."""
    return error.value in _DOWN


def is_unsupported(error: NVMLError) -> bool:
    """Whether the card or this driver lacks the feature, which hardly ever changes."""
    return error.value in _UNSUPPORTED


def is_silent(error: NVMLError) -> bool:
    """Whether the card or this driver merely has no value, which is no fault."""
    return error.value in _SILENT


def value_or(call: Callable[[], Answer], without: Answer) -> Answer:
    """The driver's value, or `without` if the driver lacks the call or has no value."""
    try:
        return call()
    except NVMLError as error:
        if not is_silent(error):
            raise
        return without
