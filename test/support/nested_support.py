"""Nested tensors and their parts, for the tests of torch.nested."""

import torch

LENGTHS = (2, 5, 1, 3)


def components(*trailing, lengths=LENGTHS, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, *trailing, generator=generator, dtype=dtype) for n in lengths]


def jagged(parts, **options):
    return torch.nested.nested_tensor(parts, layout=torch.jagged, **options)


def assert_components(nested, expected, **tolerance):
    parts = nested.unbind()
    assert len(parts) == len(expected)
    for part, wanted in zip(parts, expected, strict=True):
        torch.testing.assert_close(part, wanted, **tolerance)
