"""The base of tests of generated kernels: as elsewhere in the compiler, nothing compiled outlives a
test, and each has a cache of its own."""

from __future__ import annotations

import contextlib
import os

from torch._dynamo.test_case import TestCase as DynamoTestCase
from torch._dynamo.test_case import run_tests
from torch._inductor.utils import fresh_inductor_cache

__all__ = ["TestCase", "run_tests"]


class TestCase(DynamoTestCase):
    """A test that begins and ends with nothing compiled."""

    def setUp(self) -> None:
        super().setUp()
        self._fresh = contextlib.ExitStack()
        if os.environ.get("INDUCTOR_TEST_DISABLE_FRESH_CACHE") != "1":
            self._fresh.enter_context(fresh_inductor_cache())

    def tearDown(self) -> None:
        super().tearDown()
        self._fresh.close()
