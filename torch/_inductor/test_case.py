"""The base of tests of generated kernels: as elsewhere in the compiler, nothing compiled outlives a
test."""

from torch._dynamo.test_case import TestCase as DynamoTestCase
from torch._dynamo.test_case import run_tests

__all__ = ["TestCase", "run_tests"]


class TestCase(DynamoTestCase):
    """A test that begins and ends with nothing compiled."""
