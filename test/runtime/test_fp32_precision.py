"""torch.backends.fp32_precision and the places below it: what holds where, and that the switches of
operators follow."""

import pytest

import torch
from torch import backends

PLACES = {
    "generic": lambda: backends,
    "matmul": lambda: backends.cuda.matmul,
    "cudnn": lambda: backends.cudnn,
    "conv": lambda: backends.cudnn.conv,
    "rnn": lambda: backends.cudnn.rnn,
    "mkldnn": lambda: backends.mkldnn,
    "mkldnn.matmul": lambda: backends.mkldnn.matmul,
}


def values():
    return {name: place().fp32_precision for name, place in PLACES.items()}


START = dict.fromkeys(PLACES, "none") | {"conv": "tf32", "rnn": "tf32"}


@pytest.fixture(autouse=True)
def start():
    assert values() == START and not backends.cuda.matmul.allow_tf32
    yield
    for place in PLACES.values():
        place().fp32_precision = "none"
    backends.cudnn.allow_tf32 = True
    torch.set_float32_matmul_precision("highest")
    assert values() == START


@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_what_is_set_above_holds_below(precision):
    backends.fp32_precision = precision
    assert set(values().values()) == {precision}
    allowed = precision == "tf32"
    assert backends.cuda.matmul.allow_tf32 is allowed
    assert backends.cudnn.allow_tf32 is allowed or not hasattr(torch._C, "_cudnn_version")
    assert torch.get_float32_matmul_precision() == ("high" if allowed else "highest")
    backends.fp32_precision = "none"
    assert values() == START and not backends.cuda.matmul.allow_tf32
    assert backends.cudnn.allow_tf32 is True


def test_a_library_and_a_kind_of_operator_have_their_own():
    backends.cudnn.fp32_precision = "tf32"
    assert values() == START | {"cudnn": "tf32", "matmul": "tf32"}
    backends.cuda.matmul.fp32_precision = "ieee"
    backends.fp32_precision = "ieee"
    expected = {"generic": "ieee", "matmul": "ieee", "mkldnn": "ieee", "mkldnn.matmul": "ieee"}
    assert values() == START | expected | {"cudnn": "tf32"}
    backends.cudnn.conv.fp32_precision = "ieee"
    assert backends.cudnn.rnn.fp32_precision == "tf32"
    if hasattr(torch._C, "_cudnn_version"):
        assert backends.cudnn.allow_tf32 is False


def test_older_names_speak_of_the_same():
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cuda.matmul.fp32_precision == "tf32"
    assert torch.get_float32_matmul_precision() == "high"
    backends.cuda.matmul.allow_tf32 = False
    assert backends.cuda.matmul.fp32_precision == "ieee"
    torch.set_float32_matmul_precision("high")
    assert backends.cuda.matmul.fp32_precision == "tf32"
    torch.set_float32_matmul_precision("highest")
    assert backends.cuda.matmul.fp32_precision == "ieee"
    backends.cudnn.allow_tf32 = False
    assert backends.cudnn.conv.fp32_precision == backends.cudnn.rnn.fp32_precision == "none"
    backends.cudnn.allow_tf32 = True
    assert backends.cudnn.conv.fp32_precision == "tf32"


def test_blocks_put_back_what_was_there():
    backends.fp32_precision = "ieee"
    with backends.flags(fp32_precision="tf32"):
        assert backends.cudnn.fp32_precision == "tf32"
        with backends.cudnn.flags(enabled=True, allow_tf32=True, fp32_precision="ieee"):
            assert backends.cudnn.fp32_precision == "ieee"
            assert backends.mkldnn.fp32_precision == "tf32"
        assert backends.cudnn.fp32_precision == "tf32"
        with backends.mkldnn.flags(fp32_precision="bf16"):
            assert backends.mkldnn.conv.fp32_precision == "bf16"
            assert backends.fp32_precision == "tf32"
        assert backends.mkldnn.conv.fp32_precision == "tf32"
    assert set(values().values()) == {"ieee"}
    with backends.cudnn.flags(enabled=True, allow_tf32=False):
        pass
    assert set(values().values()) == {"ieee"}
    backends.cudnn.allow_tf32 = True
    assert backends.cudnn.conv.fp32_precision == "tf32" and backends.cudnn.allow_tf32 is True
    backends.cudnn.conv.fp32_precision = backends.cudnn.rnn.fp32_precision = "none"
    assert set(values().values()) == {"ieee"}


def test_unknown_precisions_are_refused():
    with pytest.raises(RuntimeError, match="Unknown precision: x"):
        backends.fp32_precision = "x"
    with pytest.raises(TypeError):
        backends.mkldnn.fp32_precision = 3
    with pytest.raises(RuntimeError, match="does not support precision 'bf16'"):
        backends.cuda.matmul.fp32_precision = "bf16"
    with pytest.raises(AttributeError):
        backends.cudnn.conv.precision = "ieee"
    assert values() == START
