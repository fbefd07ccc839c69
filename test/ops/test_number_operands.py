"""Numbers beside tensors: ranges, promotion, factors and bounds that a dtype does not hold."""

import math

import pytest

import torch
import torch.nn.functional as F


class TestNumbersBesideTensors:
    """A Python number that the tensor's dtype cannot hold."""

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_products_and_quotients_keep_it_in_float32(self, dtype):
        x = torch.linspace(0.1, 9.0, 777).to(dtype)
        assert torch.equal(x * 0.1, (x.float() * 0.1).to(dtype))
        assert torch.equal(0.1 * x, (x.float() * 0.1).to(dtype))
        assert torch.equal(x / 0.3, (x.float() / 0.3).to(dtype))
        assert torch.equal(x.clone().mul_(0.1), (x.float() * 0.1).to(dtype))
        assert torch.equal(x * torch.tensor(0.1), (x.float() * 0.1).to(dtype))
        assert torch.equal(torch._foreach_mul([x], 0.1)[0], (x.float() * 0.1).to(dtype))

    def test_sums_round_it(self):
        x = torch.linspace(0.1, 9.0, 777).to(torch.bfloat16)
        rounded = torch.tensor(0.1, dtype=torch.bfloat16).float()
        assert torch.equal(x + 0.1, (x.float() + rounded).to(torch.bfloat16))

    def test_out_of_range(self):
        half = torch.tensor([0.5], dtype=torch.float16)
        assert (half * 1e5).item() == 49984.0
        assert (half + 1e5).item() == math.inf and (half < 1e6).item()
        assert (torch.tensor([1.0]) * 1e39).item() == math.inf
        assert torch.full((1,), 1e6, dtype=torch.float16).item() == math.inf
        assert torch.pow(1e6, half.new_ones(1)).item() == math.inf
        mask, two = torch.tensor([True]), torch.ones(2, dtype=torch.float16)
        for call in (
            lambda: half.clamp(max=1e6),
            lambda: half.pow(1e6),
            lambda: torch.full((2,), 1e6, dtype=torch.float16),
            lambda: two.fill_(65505),
            lambda: torch.nn.functional.pad(half, (1, 1), value=1e6),
            lambda: torch.nn.functional.threshold(half, 1e6, 0.0),
            lambda: torch.nn.functional.hardtanh(half, -1e6, 1e6),
            lambda: half.masked_fill(mask, -65519.0),
        ):
            with pytest.raises(RuntimeError, match="type c10::Half without overflow"):
                call()
        assert two.tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match="type c10::BFloat16 without overflow"):
            torch.full((2,), torch.finfo(torch.float32).min, dtype=torch.bfloat16)
        with pytest.raises(RuntimeError, match=r"type c10::complex<float> without overflow"):
            torch.full((2,), 1e39, dtype=torch.complex64)
        with pytest.raises(RuntimeError, match="type c10::Float8_e4m3fn without overflow"):
            torch.full((2,), 1e3, dtype=torch.float8_e4m3fn)
        with pytest.raises(RuntimeError, match="type float without overflow"):
            torch.full((2,), 3.4028235e38)
        assert torch.full((2,), torch.finfo(torch.float32).max).isfinite().all()

    def test_numbers_with_a_point_do_not_wrap_into_integers(self):
        for dtype, number in (
            (torch.uint8, -8.4),
            (torch.uint8, -0.5),
            (torch.uint16, -1.0),
            (torch.uint64, -1.5),
            (torch.int8, 127.5),
            (torch.int8, -128.5),
        ):
            for call in (
                lambda n, d: torch.full((2,), n, dtype=d),
                lambda n, d: torch.tensor([n], dtype=d),
                lambda n, d: torch.zeros(2, dtype=d).fill_(n),
                lambda n, d: torch.zeros(2, dtype=d).masked_fill(torch.tensor([True, False]), n),
            ):
                with pytest.raises(RuntimeError, match="without overflow"):
                    call(number, dtype)
        assert torch.full((2,), -8, dtype=torch.uint8).tolist() == [248, 248]
        assert torch.tensor([-0.0, 3.9], dtype=torch.uint8).tolist() == [0, 3]

    def test_integers_wrap(self):
        small = torch.tensor([1, 2], dtype=torch.int8)
        assert (small + 1000).tolist() == [-23, -22] and (small * 1000).tolist() == [-24, -48]
        assert (torch.tensor([3], dtype=torch.uint8) - 1000).tolist() == [27]
        assert (small == 257).tolist() == [True, False]


@pytest.mark.parametrize("dtype, name", [(torch.half, "Half"), (torch.bfloat16, "BFloat16")])
def test_factor_out_of_range_raises(dtype, name):
    x = torch.ones(3, dtype=dtype)
    text = f"value cannot be converted to type c10::{name} without overflow"
    for call in (
        lambda: torch.add(x, x, alpha=1e39),
        lambda: torch.sub(x, 2, alpha=1e39),
        lambda: torch.rsub(x, x, alpha=1e39),
        lambda: torch._foreach_add([x], [x], alpha=1e39),
        lambda: torch.add(x[:0], 1, alpha=1e39),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert torch.add(x, x, alpha=float("inf")).isinf().all()
    assert torch.add(x, x, alpha=1000).tolist() == [float(torch.tensor(1001, dtype=dtype))] * 3


@pytest.mark.parametrize("make", [torch.linspace, torch.logspace])
def test_ends_out_of_range_raise(make):
    with pytest.raises(RuntimeError, match="type c10::Half without overflow"):
        make(0, 1e6, 3, dtype=torch.half)
    with pytest.raises(RuntimeError, match="type uint8_t without overflow"):
        make(0, 300.0, 3, dtype=torch.uint8)
    assert make(0, 1e6, 0, dtype=torch.half).numel() == 0
    assert make(1, 1e6, 1, dtype=torch.half).numel() == 1


def test_linspace_of_unsigned_integers_wraps_its_ends():
    assert torch.linspace(-1, 5, 3, dtype=torch.uint8).tolist() == [255, 130, 5]


@pytest.mark.parametrize(
    "dtype, low, high, text",
    [
        (torch.half, 0, 1e6, "to is out of bounds for c10::Half"),
        (torch.half, -1e6, 0, "from is out of bounds for c10::Half"),
        (torch.half, -60000, 60000, "exceed the limit"),
        (torch.float32, 0, float("inf"), "to is out of bounds for float"),
        (torch.float64, float("nan"), 1, "from is out of bounds for double"),
        (torch.float32, 1, 0, "expects to return a"),
    ],
)
def test_uniform_bounds_out_of_range_raise(dtype, low, high, text):
    with pytest.raises(RuntimeError, match=text):
        torch.ones(3, dtype=dtype).uniform_(low, high)


def test_softshrink_beyond_the_range_raises():
    with pytest.raises(RuntimeError, match=r"range \[0, 65504\] for input dtype Half"):
        F.softshrink(torch.ones(2, dtype=torch.half), 1e6)
