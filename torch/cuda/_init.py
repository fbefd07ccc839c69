"""Whether CUDA can be used, and the errors that say why not."""

from __future__ import annotations

from types import ModuleType

from torch import _C

_NOT_BUILT = "Torch not compiled with CUDA enabled"


class DeferredCudaCallError(Exception):
    """A call that was queued until CUDA was initialised failed."""


class cudaStatus:
    """Result codes of the CUDA runtime."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class CudaError(RuntimeError):
    """A call of the CUDA runtime failed."""

    def __init__(self, code) -> None:
        super().__init__(f"CUDA error {int(code)}")


def check_error(res) -> None:
    """Raises CudaError unless the code means success."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def is_available() -> bool:
    """Whether there is a device that can be used. Never raises."""
    return _C._has_cuda and _C._cuda_getDeviceCount() > 0


_initialized = False
_queued = []


def is_initialized() -> bool:
    """Whether a device has been used, or init() called, in this process."""
    return _C._has_cuda and not _is_in_bad_fork() and (_initialized or _C._cuda_hasContext())


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had initialised CUDA."""
    return _C._has_cuda and _C._cuda_isInBadFork()


def init() -> None:
    """Loads the driver; RuntimeError where there is none. Never needed: every function does so."""
    _lazy_init()


def _lazy_init() -> None:
    global _initialized
    if not _C._has_cuda:
        raise AssertionError(_NOT_BUILT)
    _C._cuda_init()
    if _initialized:
        return
    _initialized = True
    while _queued:
        call = _queued.pop(0)
        try:
            call()
        except Exception as error:
            raise DeferredCudaCallError(
                f"CUDA call failed lazily at initialization with error: {error}"
            ) from error


def _lazy_call(call, **kwargs) -> None:
    """Runs `call` now where CUDA is in use, else when it is initialised."""
    if is_initialized():
        call()
    else:
        _queued.append(call)


def cudart() -> ModuleType:
    """The calls of the CUDA runtime that programs make by hand, as a module."""
    _lazy_init()
    from torch.cuda import _cudart

    return _cudart
