"""The base of tests of the compiler: each test begins and ends with nothing compiled."""

from __future__ import annotations

import contextlib
import logging

import torch
from torch._dynamo import config, reset, utils
from torch.testing._internal import common_utils
from torch.testing._internal.common_utils import TestCase as TorchTestCase

log = logging.getLogger(__name__)


def run_tests(needs: str | tuple[str, ...] = ()) -> None:
    """Runs the tests of the calling file, unless something it needs is missing."""
    import importlib.util

    for need in (needs,) if isinstance(needs, str) else needs:
        missing = (
            not torch.cuda.is_available()
            if need == "cuda"
            else (importlib.util.find_spec(need) is None)
        )
        if missing:
            return
    common_utils.run_tests()


class TestCase(TorchTestCase):
    """A test that starts with nothing compiled and leaves settings as they were."""

    _exit_stack: contextlib.ExitStack

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls._exit_stack = contextlib.ExitStack()
        cls._exit_stack.enter_context(
            config.patch(raise_on_ctx_manager_usage=True, suppress_errors=False)
        )

    @classmethod
    def tearDownClass(cls) -> None:
        cls._exit_stack.close()
        super().tearDownClass()

    def setUp(self) -> None:
        super().setUp()
        self._grad = torch.is_grad_enabled()
        reset()
        utils.counters.clear()

    def tearDown(self) -> None:
        reset()
        utils.counters.clear()
        super().tearDown()
        if torch.is_grad_enabled() is not self._grad:
            log.warning("Running test changed grad mode")
            torch.set_grad_enabled(self._grad)
