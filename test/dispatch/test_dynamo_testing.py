"""Help for tests of the compiler: torch._dynamo.testing."""

import types
import unittest

import torch
from torch._dynamo.testing import make_test_cls_with_patches, rand_strided


def test_rand_strided_has_the_geometry_asked_for():
    t = rand_strided((2, 3), (4, 1), torch.float16)
    assert (t.shape, t.stride(), t.dtype) == ((2, 3), (4, 1), torch.float16)
    assert t.untyped_storage().nbytes() == 7 * 2
    assert rand_strided((0, 3), (3, 1)).numel() == 0


def test_copied_class_of_tests_runs_with_the_patched_setting():
    settings = types.SimpleNamespace(value=1)
    seen = []

    class Original(unittest.TestCase):
        def test_value(self):
            seen.append(settings.value)

        def test_fails(self):
            raise AssertionError("as marked")

        test_fails.marked = True

    made = make_test_cls_with_patches(
        Original, "Other", "_other", (settings, "value", 2), xfail_prop="marked"
    )
    assert made.__name__ == "OtherOriginal"
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(made)
    result = suite.run(unittest.TestResult())
    # test_fails is marked: the copy has to expect its failure, and nothing else may fail.
    assert result.wasSuccessful() and len(result.expectedFailures) == 1
    assert seen == [2] and settings.value == 1


def test_copied_class_keeps_no_place_for_a_test_that_waits_for_its_device():
    class Original(unittest.TestCase):
        def test_value(self, device):
            raise AssertionError("not a test yet")

    made = make_test_cls_with_patches(Original, "Other", "_other")
    assert [name for name in vars(made) if name.startswith("test_")] == ["test_value_other"]
