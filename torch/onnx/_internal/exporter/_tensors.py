"""Values of a model that is being built, with Python's operators, for translations to use."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import onnxscript

__all__ = ["SymbolicTensor"]


class SymbolicTensor(ir.Value):
    """A value of an ONNX graph. `a + b` adds a node to whatever graph is being recorded."""

    def __init__(
        self,
        opset: onnxscript.values.Opset,
        name: str | None = None,
        shape: ir.Shape | None = None,
        type: ir.TypeProtocol | None = None,
        doc_string: str | None = None,
        const_value: ir.TensorProtocol | None = None,
    ) -> None:
        super().__init__(
            name=name, shape=shape, type=type, doc_string=doc_string, const_value=const_value
        )
        self._opset = opset
        self.is_complex = False  # pairs of real numbers in a last dimension

    @property
    def rank(self) -> int | None:
        """The number of dimensions, where it is known."""
        return None if self.shape is None else len(self.shape)

    def __neg__(self) -> object:
        return self._opset.Neg(self)

    def __mod__(self, other: object) -> object:
        # ONNX asks for the sign of the divisor for integers, of the dividend for other numbers.
        fraction = self.dtype is not None and self.dtype.is_floating_point()
        return self._opset.Mod(self, other, fmod=int(fraction or isinstance(other, float)))


def _binary(operator: str, swapped: bool = False) -> Callable[..., object]:
    def method(self: SymbolicTensor, other: object) -> object:
        pair = (other, self) if swapped else (self, other)
        return getattr(self._opset, operator)(*pair)

    return method


_ARITHMETIC = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "truediv": "Div",
    "matmul": "MatMul",
    "pow": "Pow",
    "and": "And",
    "or": "Or",
}
_COMPARISONS = {"lt": "Less", "le": "LessOrEqual", "ge": "GreaterOrEqual", "gt": "Greater"}

for _python, _onnx in _ARITHMETIC.items():
    setattr(SymbolicTensor, f"__{_python}__", _binary(_onnx))
    setattr(SymbolicTensor, f"__r{_python}__", _binary(_onnx, swapped=True))
for _python, _onnx in _COMPARISONS.items():
    setattr(SymbolicTensor, f"__{_python}__", _binary(_onnx))
