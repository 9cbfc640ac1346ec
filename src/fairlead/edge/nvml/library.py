"""NVML in this process: loaded and initialised, ended and unloaded; what its errors mean.

It is unloaded whenever it ends. A library that stays mapped belongs to the driver that was there when it was
loaded: after an upgrade it says "version mismatch" for ever, and the loader finds it by its name before any
file. `pynvml` keeps one library for a process, and pointers into it.
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
    pynvml.NVML_ERROR_UNINITIALIZED: "it is begun anew by itself; if that does not help, look at the kernel's log",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "load NVIDIA's kernel module on this node: `modprobe nvidia`",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "install NVIDIA's driver on this node, whole",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "library and kernel module are of two drivers: reboot the node",
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
_UNLOADED: Final = frozenset({pynvml.NVML_ERROR_DRIVER_NOT_LOADED, pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH})
_DOWN: Final = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED})
_UNSUPPORTED: Final = frozenset({pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND})
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
    """Load and initialise it. Raises OutsideError; nothing of it is left then.

    A machine without a GPU is no error.
    """
    if pynvml.nvmlLib is not None:
        raise RuntimeError("NVML is open in this process already")
    try:
        pynvml.nvmlLib = ctypes.CDLL(name)
    except OSError as error:
        hint = "install NVIDIA's driver, or give this container the driver's libraries (runtime class `nvidia`)"
        raise OutsideError(SYSTEM, f"`{name}` cannot be loaded: {error}", hint) from error
    try:
        pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)
    except NVMLError as error:
        told = failure(error)  # in the library's words, so before it goes
        _unload()
        raise told from error


def close_library() -> None:
    """End and unload it. Nobody may be in a call of it."""
    with contextlib.suppress(NVMLError):  # it has ended by itself: that is why we are here
        pynvml.nvmlShutdown()
    _unload()


def _unload() -> None:
    loaded, pynvml.nvmlLib = pynvml.nvmlLib, None
    pynvml._nvmlGetFunctionPointer_cache.clear()
    close = ctypes.CDLL(None).dlclose
    close.argtypes = [ctypes.c_void_p]
    close(loaded._handle)


def failure(error: NVMLError) -> OutsideError:
    """What the agent is told."""
    return OutsideError(
        SYSTEM, f"NVIDIA's driver does not answer: {words(error)}", _MEND.get(error.value, "look at `nvidia-smi` on this node")
    )


def words(error: NVMLError) -> str:
    """NVML's, with the code for those that it does not name.

    >>> words(NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)), words(NVMLError(12345))
    ('GPU is lost', 'NVML Error with code 12345')
    """
    return str(error)


def is_gone(error: NVMLError) -> bool:
    """Whether there is no driver behind the library any more: it has to be begun anew."""
    return error.value in _GONE


def is_unloaded(failure: BaseException) -> bool:
    """Whether it says that the driver was taken out, or exchanged: whatever comes back has been reset."""
    error = failure if isinstance(failure, NVMLError) else failure.__cause__
    return isinstance(error, NVMLError) and error.value in _UNLOADED


def is_down(error: NVMLError) -> bool:
    """Whether this card is lost or waits for a reset."""
    return error.value in _DOWN


def is_unsupported(error: NVMLError) -> bool:
    """Whether the card, or this driver, does not have it: that will hardly change."""
    return error.value in _UNSUPPORTED


def is_silent(error: NVMLError) -> bool:
    """Whether the card, or this driver, just has nothing to say here: it is not ill."""
    return error.value in _SILENT


def said(call: Callable[[], Answer], without: Answer) -> Answer:
    """What the driver says, or what stands for one that does not know the call or has nothing to say."""
    try:
        return call()
    except NVMLError as error:
        if not is_silent(error):
            raise
        return without
