"""What every test process needs before its first test, and fixtures that several files use."""

import os
import signal

import pytest

# A shell that starts the tests in the background leaves SIGINT ignored, and so would every process
# the tests start: Ctrl-C, which some of them send, would do nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Kernels are to be tested, not the operators that run until they are compiled. The setting is read
# when the compiler is first imported, which any test file may do.
os.environ.setdefault("TORCHINDUCTOR_CUDA_BACKGROUND", "0")


_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@pytest.fixture(autouse=True)
def signal_handlers():
    """Launchers take the signals of their process and keep them: the next test gets them back."""
    before = [signal.getsignal(number) for number in _HANDLED]
    yield
    for number, handler in zip(_HANDLED, before, strict=True):
        if signal.getsignal(number) is not handler and handler is not None:
            signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def own_compiler_cache(tmp_path_factory):
    """What the compiler keeps is kept for these tests: they neither find what earlier runs left nor
    leave anything."""
    before = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("compiler-cache"))
    yield
    if before is None:
        os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
    else:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = before


@pytest.fixture
def float64_default():
    """Numbers become float64 tensors."""
    import torch

    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
