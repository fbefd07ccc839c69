"""MetaConverter: what it keeps of a tensor, what two images share, and when it forgets."""

import weakref
from collections.abc import Callable

import pytest

import torch
from torch._subclasses.meta_utils import MetaConverter, assert_metadata_eq, is_sparse_any


def leaf() -> torch.Tensor:
    return torch.randn(4, 6, requires_grad=True)


CASES: dict[str, Callable[[], torch.Tensor]] = {
    "plain": lambda: torch.randn(3, 4),
    "leaf": leaf,
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)).detach().requires_grad_(),
    "result": lambda: leaf() * 2,
    "view of a leaf": lambda: leaf()[1:],
    "view of a result": lambda: (leaf() * 2).t(),
    "view that became a leaf": lambda: torch.randn(8).view(2, 4).requires_grad_().view(2, 2, 2),
    "strides with gaps": lambda: torch.empty_strided((2, 2), (4, 2), requires_grad=True),
    "channels last": lambda: torch.empty(2, 3, 4, 5, memory_format=torch.channels_last),
    "conjugate": lambda: torch.randn(3, dtype=torch.complex64).conj(),
    "imaginary part": lambda: torch.randn(3, dtype=torch.complex64).imag,
    "imaginary part of a conjugate": lambda: torch.randn(3, dtype=torch.complex64).conj().imag,
    "complex view": lambda: torch.view_as_complex(torch.randn(3, 2)),
    "other dtype": lambda: torch.randn(4).view(torch.int32),
}


@pytest.mark.parametrize("name", CASES)
def test_image_has_all_properties_of_the_tensor(name):
    tensor = CASES[name]()

    def equal(a: object, b: object) -> None:
        assert a == b

    image = MetaConverter()(tensor)
    assert image.device.type == "meta"
    assert_metadata_eq(equal, image, tensor)


def test_image_of_a_gradient_comes_along():
    tensor = leaf()
    tensor.sum().backward()
    image = MetaConverter()(tensor)
    assert image.grad.shape == tensor.shape and image.grad.device.type == "meta"


def test_views_of_one_tensor_become_views_of_one_image():
    base = torch.randn(4)
    convert = MetaConverter()
    first, second = convert(base[:2]), convert(base[2:])
    assert first._base is second._base and convert(base) is first._base
    before = second._version
    first.add_(1)
    assert second._version == first._version == before + 1


def test_tensors_on_one_storage_share_an_image_of_it():
    storage = torch.randn(4).untyped_storage()
    tensors = [torch.empty(0).set_(storage, start, (2,)) for start in (0, 2)]
    convert = MetaConverter()
    images = [convert(t) for t in tensors]
    assert images[0].untyped_storage()._cdata == images[1].untyped_storage()._cdata
    assert len(convert.storage_memo) == 1


def test_converter_forgets_what_is_gone():
    convert = MetaConverter()
    tensor = torch.randn(3)
    image = convert(tensor)
    assert convert(tensor) is image
    assert len(convert.describer.lookup_tensor) == len(convert.describer.lookup_storage) == 1
    del tensor
    assert len(convert.describer.lookup_tensor) == len(convert.describer.lookup_storage) == 0
    assert len(convert.tensor_memo) == len(convert.storage_memo) == 1
    del image
    assert len(convert.tensor_memo) == len(convert.storage_memo) == 0


def test_image_does_not_keep_the_converter():
    convert = MetaConverter()
    reference = weakref.ref(convert)
    image = convert(torch.randn(3))
    del convert
    assert reference() is None and image.shape == (3,)


def test_what_has_no_meta_form_stays_and_counts_as_a_miss():
    convert = MetaConverter()
    assert convert("text") == "text" and not convert.successful()
    convert(torch.ones(2))
    assert convert.successful()
    sparse = torch.eye(2).to_sparse()
    assert is_sparse_any(sparse) and convert(sparse) is sparse
    assert not convert.successful()
