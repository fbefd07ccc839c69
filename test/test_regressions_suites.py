"""What other projects' own test suites found: each test is the smallest form of something that
passed on PyTorch and did not here."""

import subprocess
import sys
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import torch
from torch.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("namedtuple", Point(1, 2)),
        ("ordereddict", OrderedDict(a=1, b=2)),
        ("odict", OrderedDict(a=1, b=2)),
        ("defaultdict", defaultdict(list, {"a": 1, "b": 2})),
        ("deque", deque([1, 2], maxlen=3)),
    ],
)
def test_each_container_names_its_functions(kind, value):
    children, context = getattr(pytree, f"_{kind}_flatten")(value)
    assert children == [1, 2]
    back = getattr(pytree, f"_{kind}_unflatten")(children, context)
    assert back == value and type(back) is type(value)


def test_pytree_has_names_for_annotations():
    for name in ("FlattenFunc", "UnflattenFunc", "FlattenWithKeysFunc", "KeyEntry", "KeyPath"):
        assert hasattr(pytree, name)
    assert pytree._is_namedtuple_instance(Point(1, 2))


def test_sizes_of_modules_have_names():
    from typing import get_args

    from torch.nn.common_types import _maybe_indices_t, _size_2_opt_t, _size_2_t, _size_any_t

    assert get_args(_size_2_t) == (int, tuple[int, int])
    assert get_args(_size_any_t) == (int, tuple[int, ...])
    assert type(None) in get_args(_size_2_opt_t)
    assert get_args(_maybe_indices_t) == (torch.Tensor, tuple[torch.Tensor, torch.Tensor])


def test_dir_names_submodules_that_are_not_loaded_yet():
    script = "import torch; print({'amp', 'func', 'futures', 'jit', 'optim'} <= set(dir(torch)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
    assert all(hasattr(torch, name) for name in dir(torch) if name[0] != "_")


def test_writing_to_an_empty_expanded_tensor_does_not_warn():
    x = torch.zeros(1, 2).expand(3, 2)[:0]
    mask = torch.zeros(0, 2, dtype=torch.bool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[mask] = torch.zeros(0)
        x.masked_fill_(mask, 1.0)
    with pytest.warns(UserWarning, match="on expanded tensors"):
        torch.zeros(1, 2).expand(3, 2)[torch.ones(3, 2, dtype=torch.bool)] = torch.zeros(6)
