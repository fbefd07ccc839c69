"""Modules of the C++ front end as modules of Python: torch::python::bind_module."""

import importlib.util
import pathlib

import pytest

import torch
from torch import nn
from torch.utils import cpp_extension

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("pybind11") is None,
        reason="the headers of pybind11 are a package of their own, and not installed here",
    ),
]

SOURCE = """
#include <torch/extension.h>

struct Scaled : torch::nn::Cloneable<Scaled> {
  Scaled(int64_t in, int64_t out) : in(in), out(out) { reset(); }
  void reset() override {
    layer = register_module("layer", torch::nn::Linear(in, out));
    scale = register_buffer("scale", torch::full({1}, 2.0));
  }
  torch::Tensor forward(torch::Tensor x) { return layer(x) * (is_training() ? scale : scale * 2); }
  void add_parameter(const std::string& name, torch::Tensor t) { register_parameter(name, t); }
  int64_t in, out;
  torch::nn::Linear layer{nullptr};
  torch::Tensor scale;
};
// backward's list by its other name.
struct Twice : torch::autograd::Function<Twice> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, torch::Tensor x) { return x * 2; }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               torch::autograd::tensor_list grads) {
    return {grads[0] * 2};
  }
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  torch::python::bind_module<Scaled>(m, "Scaled")
      .def(py::init<int64_t, int64_t>())
      .def("add_parameter", &Scaled::add_parameter)
      .def_readonly("in_features", &Scaled::in);
  m.def("twice", [](torch::Tensor x) { return Twice::apply(x); });
}
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("bound")
    source = folder / "bound.cpp"
    pathlib.Path(source).write_text(SOURCE)
    return cpp_extension.load(
        "bound", [str(source)], extra_cflags=["-O0"], build_directory=str(folder)
    )


def test_forward_and_gradients_are_those_of_the_same_layer_in_python(extension) -> None:
    bound, plain = extension.Scaled(5, 2).to(torch.float64), nn.Linear(5, 2).double()
    found = dict(bound.named_parameters())
    plain.load_state_dict({"weight": found["layer.weight"], "bias": found["layer.bias"]})
    x = torch.randn(3, 5, dtype=torch.float64)
    torch.testing.assert_close(bound(x), plain(x) * 2)
    bound(x).sum().backward()
    (plain(x) * 2).sum().backward()
    torch.testing.assert_close(found["layer.weight"].grad, plain.weight.grad)


def test_bound_module_is_a_part_of_python_modules(extension) -> None:
    net = extension.Scaled(5, 2)
    whole = nn.Sequential(nn.Linear(3, 5), net, nn.Sigmoid())
    assert isinstance(net, nn.Module) and list(whole(torch.ones(1, 3)).shape) == [1, 2]
    assert len(list(whole.parameters())) == 2 + len(net.parameters())
    assert len(list(whole.modules())) == 5 and len(net.buffers()) == 1
    assert "1.layer.weight" in whole.state_dict()
    whole.to(torch.float64)
    assert {p.dtype for p in net.parameters()} == {torch.float64}
    assert net.in_features == 5


def test_mode_of_training_reaches_the_object(extension) -> None:
    net = extension.Scaled(2, 2)
    x = torch.ones(1, 2)
    trained = net(x)
    assert net.training
    nn.Sequential(net).eval()
    assert not net.training
    torch.testing.assert_close(net(x), trained * 2)


def test_what_the_object_registers_later_is_seen(extension) -> None:
    net = extension.Scaled(2, 2)
    assert len(net._parameters) == 0 and len(net._modules) == 1
    net.add_parameter("late", torch.eye(2))
    assert list(net._parameters) == ["late"] and len(net.parameters()) == 3
    with pytest.raises(AttributeError, match="its C\\+\\+ class registers parameters"):
        net.other = nn.Parameter(torch.ones(1))
    with pytest.raises(AttributeError):
        _ = net.missing


def test_clone_has_parameters_of_its_own(extension) -> None:
    net = extension.Scaled(2, 2)
    other = net.clone()
    assert type(other) is type(net)
    with torch.no_grad():
        other.parameters()[0].zero_()
    assert net.parameters()[0].abs().sum() > 0


def test_wrong_arguments_are_type_errors(extension) -> None:
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        extension.Scaled("five", 2)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        extension.Scaled(5, 2)(torch.ones(1, 4))


def test_function_with_tensor_lists_differentiates(extension) -> None:
    x = torch.ones(2, requires_grad=True)
    extension.twice(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
