"""torch.onnx without the packages that exports need: operators, and what older programs import."""

import importlib
import math
import subprocess
import sys

import numpy as np
import pytest

import torch


def test_import_of_torch_onnx_loads_no_package_of_onnx():
    code = "import sys, torch.onnx; print([m for m in sys.modules if m.startswith('onnx')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_entry_points_of_the_older_exporter_raise_and_name_what_to_use():
    with pytest.raises(torch.onnx.OnnxExporterError, match="dynamo=True"):
        torch.onnx.export(torch.nn.Linear(1, 1), (torch.ones(1),), dynamo=False)
    with pytest.raises(torch.onnx.OnnxExporterError, match="TorchScript"):
        torch.onnx.dynamo_export(torch.nn.Linear(1, 1))
    for name in ("symbolic_opset9", "symbolic_opset11"):
        module = importlib.import_module(f"torch.onnx.{name}")
        with pytest.raises(torch.onnx.OnnxExporterError, match="custom_translation_table"):
            module.select(None, None, 0, 0)
    with pytest.raises(AttributeError):
        torch.onnx.nothing()


def test_registering_a_function_for_an_older_exporter_is_accepted_by_name():
    torch.onnx.register_custom_op_symbolic("names_test::op", len, 11)
    torch.onnx.unregister_custom_op_symbolic("names_test::op", 11)
    with pytest.raises(torch.onnx.OnnxExporterError, match="domain::name"):
        torch.onnx.register_custom_op_symbolic("op", len, 11)


def test_not_exporting_outside_of_an_export():
    assert torch.onnx.is_in_onnx_export() is False


def test_attention_of_onnx_is_a_softmax_of_products():
    generator = np.random.default_rng(0)
    q, k, v = (generator.standard_normal((2, 4, 3, 8)) for _ in range(3))
    k, v = k[:, :2], v[:, :2]
    scores = q @ np.repeat(k, 2, axis=1).swapaxes(-1, -2) / math.sqrt(8)
    scores[:, :, ~np.tri(3, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    expected = weights @ np.repeat(v, 2, axis=1)
    given = [torch.from_numpy(x.copy()) for x in (q, k, v)]
    found, keys, values, shown = torch.onnx.ops.attention(
        *given, is_causal=True, qk_matmul_output_mode=3
    )
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(shown.numpy(), weights, rtol=1e-6)
    assert keys.shape == values.shape == (2, 2, 3, 8)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding_turns_pairs(interleaved):
    x = np.random.default_rng(1).standard_normal((1, 1, 2, 4))
    angles = np.array([[[0.1, 0.2], [0.3, 0.4]]])
    expected = np.empty_like(x)
    for place in range(2):
        for pair in range(2):
            first, second = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + 2)
            c, s = np.cos(angles[0, place, pair]), np.sin(angles[0, place, pair])
            a, b = x[0, 0, place, first], x[0, 0, place, second]
            expected[0, 0, place, first] = c * a - s * b
            expected[0, 0, place, second] = s * a + c * b
    found = torch.onnx.ops.rotary_embedding(
        torch.from_numpy(x),
        torch.from_numpy(np.cos(angles)),
        torch.from_numpy(np.sin(angles)),
        interleaved=interleaved,
    )
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_symbolic_operator_returns_zeros_of_the_given_form():
    a, b = torch.onnx.ops.symbolic_multi_out(
        "custom::Two", (torch.ones(2),), dtypes=(torch.float32, 7), shapes=((2, 3), (4,))
    )
    assert (a.shape, b.shape, b.dtype) == ((2, 3), (4,), torch.int64)
    with pytest.raises(TypeError, match="attribute"):
        torch.onnx.ops.symbolic(
            "custom::One", (a,), {"t": torch.ones(1)}, dtype=torch.float32, shape=(1,)
        )
