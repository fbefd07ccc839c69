"""Python's operations on trackers: operators, comparison, truth, attributes, iteration, sorting.
The frame of the interpreter derives from this class; each operation follows CPython's protocol
(special methods looked up on the class, reflected operands, identity before equality)."""

from __future__ import annotations

import collections
import functools
import operator
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import (
    ObservedException,
    raise_error,
    raise_observed,
    unimplemented,
)
from torch._dynamo.operators import (
    COMPARISONS,
    DIVISIONS,
    INPLACE,
    SPECIAL,
    SYMBOL,
    UNARY,
    UNARY_NAME,
)
from torch._dynamo.polyfills import own_class
from torch._dynamo.text_model import TextModel
from torch._dynamo.variables import numpy_arrays
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker, bodies
from torch._dynamo.variables.constant import (
    FALSE,
    TRUE,
    ConstantVariable,
    wrap_result,
)
from torch._dynamo.variables.dicts import (
    ConstDictVariable,
    DictViewVariable,
    pairs_of,
)
from torch._dynamo.variables.functions import UserMethodVariable
from torch._dynamo.variables.iter import (
    BackwardIteratorVariable,
    DequeIteratorVariable,
    IteratorVariable,
    SequenceIteratorVariable,
    TableIteratorVariable,
)
from torch._dynamo.variables.lists import (
    BaseListVariable,
    DequeVariable,
    ListVariable,
    RangeVariable,
    SizeVariable,
)
from torch._dynamo.variables.misc import GetAttrVariable, UnknownVariable
from torch._dynamo.variables.numpy_arrays import NumpyNdarrayVariable
from torch._dynamo.variables.sets import SET_OPERATORS, SetVariable, TableWalk
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.user_defined import (
    _MISSING,
    UserDefinedClassVariable,
    UserDefinedObjectVariable,
    class_attribute,
)

if TYPE_CHECKING:
    from torch._dynamo.output_graph import OutputGraph

_CONCATENATED = (list, tuple, collections.deque)
_NOT_IMPLEMENTED = object()
# What is traced on symbolic floats; powers may be complex, remainders need the number.
_OF_FLOATS = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.eq, operator.ne),
        *(operator.lt, operator.le, operator.gt, operator.ge),
    }
)


_NO_ITERATORS = (
    *(BaseListVariable, ConstDictVariable, SetVariable, DictViewVariable, ConstantVariable),
    SymNodeVariable,
)


def _is_symbolic_float(vt: VariableTracker) -> bool:
    return isinstance(vt, SymNodeVariable) and vt.python_type() is float


_REMAINDERS = (operator.mod, operator.imod)


class DataModel(TextModel):
    """Operations on trackers."""

    out: OutputGraph
    is_library: bool

    # ---- changes

    def mutate(self, vt: VariableTracker) -> None:
        """The object is about to change."""
        self.check_inside(vt)
        if vt.source is not None:
            self.out.side_effects.note(vt)
        else:
            self.note_new(vt)
        vt.changed = True

    def note_new(self, vt: VariableTracker) -> None:
        """An object that the trace made is about to change."""
        if id(vt) in self.out.orphans:
            unimplemented("mutation", repr(vt), "the trace found no way that leads to the object")
        if vt.born < self.out.call_start:
            self.out.side_effects.changes += 1

    def with_effects(self, call: Callable[[], VariableTracker]) -> tuple[VariableTracker, bool]:
        """The result of a call, and whether it changed anything that was there before."""
        out = self.out
        before, outer = out.side_effects.count(), out.call_start
        bodies[0] += 1
        out.call_start = bodies[0]
        try:
            return call(), out.side_effects.count() != before
        finally:
            out.call_start = outer

    def check_inside(self, vt: VariableTracker) -> None:
        """The function of an operator may change what it made itself, nothing around it."""
        out = self.out
        if out.scopes and not self.is_library and getattr(vt, "born", 0) < out.body_start:
            unimplemented(
                "HigherOrderOperator: Mutating a variable not in the current scope (SideEffects)",
                repr(vt),
                "the function of a higher-order operator changes something outside of itself",
            )

    def mutate_contents(self, obj: UserDefinedObjectVariable, name: str) -> None:
        """A method of the builtin container inside an object may change it."""
        if obj.source is not None:
            self.out.side_effects.note(obj)

    # ---- numbers

    def as_index(self, vt: VariableTracker) -> int | slice | object:
        """A value as an index."""
        if type(vt) is ConstantVariable:
            return vt.value
        if isinstance(vt, SymNodeVariable):
            return vt.evaluate()
        if vt.is_python_constant():
            return vt.as_python_constant()
        if vt.python_type() is slice:
            return slice(*[self.as_index(item) for item in vt.items])
        if isinstance(vt, UserDefinedObjectVariable):
            found = vt.special(self, "__index__")
            if found is not None:
                given = found.call_function(self, [], {}).realize()
                if not issubclass(given.python_type(), int):
                    kind = given.python_type().__name__
                    raise_error(self, TypeError, f"__index__ returned non-int (type {kind})")
                return self.as_index(given)
        unimplemented("index", repr(vt), "an index that is not known while tracing")

    def as_integer(self, vt: VariableTracker) -> int:
        """operator.index(vt), known while tracing."""
        found = self.as_index(vt)
        if not isinstance(found, int):
            kind = type(found).__name__
            text = f"{kind!r} object cannot be interpreted as an integer"
            raise_error(self, TypeError, text)
        return int(found)

    def constant_or_text(self, vt: VariableTracker) -> object:
        """A value for the message of an exception."""
        return vt.as_python_constant() if vt.is_python_constant() else vt.describe()

    # ---- truth and identity

    def truth(self, vt: VariableTracker) -> bool:
        """bool(vt), known while tracing."""
        found = vt.truth(self)
        if found is True or found is False:
            return found
        if isinstance(found, SymNodeVariable):
            return found.truth(self)
        unimplemented(
            "Data-dependent branching",
            f"attempted to branch on {vt!r}",
            "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). "
            "Dynamo does not support tracing dynamic control flow.",
            ("Use `torch.cond` to express dynamic control flow.",),
        )

    def identical(self, a: VariableTracker, b: VariableTracker) -> VariableTracker:
        """a is b"""
        if a is not b and a.python_type() is b.python_type():
            # Python keeps one object for each small number.
            a, b = self.without_symbol(a), self.without_symbol(b)
        found = a.is_same(b)
        if found is None:
            found = b.is_same(a)
        if found is None:
            unimplemented(
                "identity", f"{a!r} is {b!r}", "whether two values are one object is not known"
            )
        if not found:
            self.note_different(a, b)
        return TRUE if found else FALSE

    def note_different(self, a: VariableTracker, b: VariableTracker) -> None:
        """What was traced rests on two objects being different ones."""
        if a.source is not None and b.source is not None and a.python_type() is b.python_type():
            self.out.compared.add(a.python_type())

    def without_symbol(self, vt: VariableTracker) -> VariableTracker:
        """The value, a symbolic number as the constant that it has in this call."""
        return ConstantVariable(vt.evaluate()) if isinstance(vt, SymNodeVariable) else vt

    def same_or_equal(self, a: VariableTracker, b: VariableTracker) -> bool:
        """What `in` asks of an item."""
        if a.is_same(b) is True:
            return True
        return self.equal(a, b)

    def equal(self, a: VariableTracker, b: VariableTracker) -> bool:
        """a == b, known while tracing."""
        return self.truth(self.binary(operator.eq, a, b))

    # ---- operators

    def unary(self, op: Callable, a: VariableTracker) -> VariableTracker:
        """op(a)"""
        if op is operator.not_:
            found = a.truth(self)
            if found is True or found is False:
                return FALSE if found else TRUE
            if isinstance(found, SymNodeVariable):
                return self.out.call(self, torch.sym_not, [found], {})
            if isinstance(found, TensorVariable):
                unimplemented(
                    "Data-dependent branching", f"not {a!r}", "the truth of a tensor's data"
                )
        if isinstance(a, NumpyNdarrayVariable):
            return numpy_arrays.call(self, op, [a], {})
        if isinstance(a, ConstantVariable):
            try:
                return wrap_result(self, op(a.value))
            except Exception as error:
                raise_observed(self, error)
        refused = op is operator.invert and a.python_type() is float
        if isinstance(a, SymNodeVariable) and op is operator.invert and not refused:
            return self.binary(operator.sub, self.unary(operator.neg, a), ConstantVariable(1))
        if isinstance(a, TensorVariable | SymNodeVariable) and not refused:
            return self.out.call(self, op, [a], {})
        if isinstance(a, UserDefinedObjectVariable):
            found = a.special(self, UNARY[op])
            if found is not None:
                return found.call_function(self, [], {})
        kind = a.python_type().__name__
        raise_error(self, TypeError, f"bad operand type for {UNARY_NAME[op]}: {kind!r}")

    def binary(self, op: Callable, a: VariableTracker, b: VariableTracker) -> VariableTracker:
        """op(a, b)"""
        if op in _REMAINDERS and isinstance(a, ConstantVariable) and isinstance(a.value, str):
            # First of all: whatever stands behind it becomes a text.
            return self.percent_format(a.value, b)
        if isinstance(a, NumpyNdarrayVariable) or isinstance(b, NumpyNdarrayVariable):
            return self._array_binary(op, a, b)
        if type(a) is ConstantVariable and type(b) is ConstantVariable:
            try:
                return wrap_result(self, op(a.value, b.value))
            except Exception as error:
                raise_observed(self, error)
        if self._has_override(a) or self._has_override(b):
            return self._by_special_methods(op, a, b)
        if isinstance(a, TensorVariable) or isinstance(b, TensorVariable):
            return self._tensor_binary(op, a, b)
        if isinstance(a, SymNodeVariable) or isinstance(b, SymNodeVariable):
            found = self._symbolic(op, a, b)
            if found is not None:
                return found
        if isinstance(a, UnknownVariable) or isinstance(b, UnknownVariable):
            self._check_compared_by_address(op, a, b)
        if op in INPLACE:
            return self._inplace(op, a, b)
        found = self._builtin_binary(op, a, b)
        if found is not None:
            return found
        return self._by_special_methods(op, a, b)

    def _array_binary(
        self, op: Callable, a: VariableTracker, b: VariableTracker
    ) -> VariableTracker:
        if op not in INPLACE or not isinstance(a, NumpyNdarrayVariable):
            # Beside a tensor PyTorch's operator has its say, whichever comes first.
            if isinstance(b, TensorVariable):
                return self.binary(op, numpy_arrays.beside(self, a, b), b)
            if isinstance(a, TensorVariable):
                return self.binary(op, a, numpy_arrays.beside(self, b, a))
            return numpy_arrays.call(self, op, [a, b], {})
        return a.inplace(self, op, b)

    def _check_compared_by_address(
        self, op: Callable, a: VariableTracker, b: VariableTracker
    ) -> None:
        """What operators of C code do with values that the trace cannot look into is not known."""
        unknown = [vt for vt in (a, b) if isinstance(vt, UnknownVariable)]
        if op not in (operator.eq, operator.ne) or any(
            vt.cls.__eq__ is not object.__eq__ for vt in unknown
        ):
            unimplemented("operator", f"{op.__name__} of {a!r} and {b!r}", "a value of C code")

    def _has_override(self, vt: VariableTracker) -> bool:
        return isinstance(vt, UserDefinedObjectVariable)

    def _tensor_binary(
        self, op: Callable, a: VariableTracker, b: VariableTracker
    ) -> VariableTracker:
        for vt in (a, b):
            if not isinstance(vt, TensorVariable | SymNodeVariable | ConstantVariable):
                if isinstance(vt, BaseListVariable | ConstDictVariable | UserDefinedClassVariable):
                    if op in (operator.eq, operator.ne):
                        return ConstantVariable(op is operator.ne)
        for vt in (a, b):
            if (
                vt.is_python_constant()
                and vt.as_python_constant() is None
                and op
                in (
                    operator.eq,
                    operator.ne,
                )
            ):
                return ConstantVariable(op is operator.ne)
        if op in INPLACE and not isinstance(a, TensorVariable):
            op = INPLACE[op]
        return self.out.call(self, op, [a, b], {})

    def _symbolic(
        self, op: Callable, a: VariableTracker, b: VariableTracker
    ) -> VariableTracker | None:
        for vt in (a, b):
            number = isinstance(vt, SymNodeVariable) or (
                isinstance(vt, ConstantVariable) and isinstance(vt.value, int | float)
            )
            if not number:
                if isinstance(vt, BaseListVariable | ConstantVariable):
                    a, b = (
                        ConstantVariable(x.evaluate()) if isinstance(x, SymNodeVariable) else x
                        for x in (a, b)
                    )
                    return self.binary(op, a, b)
                return None
        plain = INPLACE.get(op, op)
        if plain not in _OF_FLOATS and (_is_symbolic_float(a) or _is_symbolic_float(b)):
            known = [ConstantVariable(self.as_index(vt)) for vt in (a, b)]
            return self.binary(plain, *known)
        self._check_defined(plain, a, b)
        try:
            return self.out.call(self, plain, [a, b], {})
        except ObservedException as error:
            # Symbols are numbers of 64 bits; those of Python have no end.
            if error.value.python_type() is not OverflowError or float in (
                a.python_type(),
                b.python_type(),
            ):
                raise
            return self.binary(plain, self.without_symbol(a), self.without_symbol(b))

    def _check_defined(self, op: Callable, a: VariableTracker, b: VariableTracker) -> None:
        """Numbers for which an operator raises are no case of the graph: a guard keeps them out,
        so that the program raises at its own place."""
        if op in DIVISIONS and not self.truth(b):
            floats = any(vt.python_type() is float for vt in (a, b))
            raise_error(self, ZeroDivisionError, DIVISIONS[op][floats])
        if op is operator.pow and isinstance(b, SymNodeVariable):
            b.evaluate()
        elif op is operator.pow and b.value < 0 and not a.truth(self):
            raise_error(self, ZeroDivisionError, "0.0 cannot be raised to a negative power")

    def _inplace(self, op: Callable, a: VariableTracker, b: VariableTracker) -> VariableTracker:
        plain = INPLACE[op]
        if isinstance(a, ListVariable) and op is operator.iadd:
            return a.call_method(self, "__iadd__", [b], {})
        if isinstance(a, ListVariable) and op is operator.imul:
            self.mutate(a)
            a.items[:] = a.items * self.as_index(b)
            return a
        if (
            isinstance(a, SetVariable)
            and a.cls is set
            and plain in SET_OPERATORS
            and isinstance(b, SetVariable | DictViewVariable)
        ):
            a.combine_into(self, plain, b.as_set(self) if isinstance(b, DictViewVariable) else b)
            return a
        if type(a) is ConstDictVariable and op is operator.ior:
            a.update(self, [b], {})
            return a
        if (
            isinstance(a, BaseListVariable)
            and op is operator.iadd
            and a.python_type().__name__ == "deque"
        ):
            return a.call_method(self, "__iadd__", [b], {})
        return self.binary(plain, a, b)

    def _builtin_binary(
        self, op: Callable, a: VariableTracker, b: VariableTracker
    ) -> VariableTracker | None:
        if isinstance(a, BaseListVariable):
            return self._list_binary(op, a, b)
        if isinstance(b, BaseListVariable) and op is operator.mul:
            return self._list_binary(op, b, a)
        if isinstance(a, SetVariable | DictViewVariable) and isinstance(
            b, SetVariable | DictViewVariable
        ):
            return self._set_binary(op, a, b)
        if isinstance(a, ConstDictVariable) and isinstance(b, ConstDictVariable):
            return self._dict_binary(op, a, b)
        if a.is_python_constant() and b.is_python_constant():
            try:
                return VariableTracker.build(
                    self, op(a.as_python_constant(), b.as_python_constant())
                )
            except Exception as error:
                raise_observed(self, error)
        if (
            op in (operator.eq, operator.ne)
            and isinstance(a, UserMethodVariable)
            and isinstance(b, UserMethodVariable)
        ):
            same = a.func.is_same(b.func) and a.obj.realize().is_same(b.obj.realize())
            return ConstantVariable(bool(same) == (op is operator.eq))
        if (
            op in (operator.eq, operator.ne)
            and not isinstance(a, UserDefinedObjectVariable)
            and not isinstance(b, UserDefinedObjectVariable)
        ):
            same = a.is_same(b)
            if same is None:
                unimplemented("equality", f"{a!r} == {b!r}", "whether they are equal is not known")
            return ConstantVariable(same == (op is operator.eq))
        return None

    def _list_binary(
        self, op: Callable, a: BaseListVariable, b: VariableTracker
    ) -> VariableTracker | None:
        if op is operator.add and isinstance(b, BaseListVariable):
            sized = (a.cls is tuple or a.cls is torch.Size) == (
                b.cls is tuple or b.cls is torch.Size
            )
            if not sized or isinstance(a, DequeVariable) != isinstance(b, DequeVariable):
                raise_error(
                    self,
                    TypeError,
                    f"can only concatenate {a.python_type().__name__} (not "
                    f'"{b.python_type().__name__}") to {a.python_type().__name__}',
                )
            if isinstance(b, SizeVariable) and a.cls is tuple:
                return SizeVariable([*a.items, *b.items])
            return a.like([*a.items, *b.items])
        if op is operator.mul and b.python_type() in (int, bool):
            return a.like(a.items * self.as_index(b))
        if op in COMPARISONS and isinstance(b, BaseListVariable):
            return self._compare_sequences(op, a, b)
        if op is operator.eq:
            return FALSE if not isinstance(b, UserDefinedObjectVariable) else None
        if op is operator.ne:
            return TRUE if not isinstance(b, UserDefinedObjectVariable) else None
        if isinstance(b, UserDefinedObjectVariable):
            return None
        kinds = a.python_type().__name__, b.python_type().__name__
        if op is operator.add and a.cls in _CONCATENATED:
            text = f'can only concatenate {kinds[0]} (not "{kinds[1]}") to {kinds[0]}'
            raise_error(self, TypeError, text)
        if op is operator.mul:
            text = f"can't multiply sequence by non-int of type {kinds[1]!r}"
            raise_error(self, TypeError, text)
        self._refuse_operands(op, a, b)

    def _refuse_operands(self, op: Callable, a: VariableTracker, b: VariableTracker) -> None:
        kinds = f"{a.python_type().__name__!r} and {b.python_type().__name__!r}"
        symbol = SYMBOL.get(op)
        if op in COMPARISONS:
            raise_error(self, TypeError, f"{symbol!r} not supported between instances of {kinds}")
        if op in INPLACE:
            symbol = SYMBOL[INPLACE[op]].replace(" or pow()", "") + "="
        raise_error(self, TypeError, f"unsupported operand type(s) for {symbol}: {kinds}")

    def _compare_sequences(
        self, op: Callable, a: BaseListVariable, b: BaseListVariable
    ) -> VariableTracker:
        if isinstance(a, RangeVariable) and isinstance(b, RangeVariable):
            return ConstantVariable(op(a.value, b.value))
        kinds = [tuple if issubclass(v.python_type(), tuple) else v.cls for v in (a, b)]
        if kinds[0] is not kinds[1]:
            if op in (operator.eq, operator.ne):
                return ConstantVariable(op is operator.ne)
            self._refuse_operands(op, a, b)
        if op in (operator.eq, operator.ne) and len(a.items) != len(b.items):
            return ConstantVariable(op is operator.ne)
        for x, y in zip(a.unpack(self), b.unpack(self), strict=False):
            if not self.same_or_equal(x, y):
                if op in (operator.eq, operator.ne):
                    return ConstantVariable(op is operator.ne)
                return self.binary(op, x, y)
        return ConstantVariable(op(len(a.items), len(b.items)))

    def _set_binary(
        self, op: Callable, a: VariableTracker, b: VariableTracker
    ) -> VariableTracker | None:
        if isinstance(a, DictViewVariable):
            if a.kind == "values":
                return None
            a = a.as_set(self)
        if isinstance(b, DictViewVariable):
            b = b.as_set(self)
        if op in COMPARISONS:
            return ConstantVariable(op(set(a.items), set(b.items)))
        if op in (operator.or_, operator.and_, operator.sub, operator.xor):
            return a.combined(self, op, b)
        return None

    def _dict_binary(
        self, op: Callable, a: ConstDictVariable, b: ConstDictVariable
    ) -> VariableTracker | None:
        if op is operator.or_:
            made = a.copied()
            made.update(self, [b], {})
            return made
        if op in (operator.eq, operator.ne):
            ordered = all(issubclass(d.cls, collections.OrderedDict) for d in (a, b))
            keys = list if ordered else set
            same = keys(a.items) == keys(b.items) and all(
                self.same_or_equal(a.lookup_hash(k), b.lookup_hash(k)) for k in list(a.items)
            )
            return ConstantVariable(same == (op is operator.eq))
        return None

    def _by_special_methods(
        self, op: Callable, a: VariableTracker, b: VariableTracker
    ) -> VariableTracker:
        given = op
        if op in INPLACE:
            found = self._call_special(a, f"__{op.__name__}__", b)
            if found is not _NOT_IMPLEMENTED:
                return found
            op = INPLACE[op]
        left, right = SPECIAL.get(op, (None, None))
        if left is None:
            unimplemented("operator", f"{op}({a!r}, {b!r})", "an operator without special method")
        order = [(a, left, b), (b, right, a)]
        kinds = a.python_type(), b.python_type()
        if (
            kinds[0] is not kinds[1]
            and issubclass(kinds[1], kinds[0])
            and isinstance(b, UserDefinedObjectVariable)
        ):
            order.reverse()
        elif kinds[0] is kinds[1] and op not in COMPARISONS:
            order.pop()
        for obj, name, other in order:
            found = self._call_special(obj, name, other)
            if found is not _NOT_IMPLEMENTED:
                return found
        if op is operator.eq or op is operator.ne:
            if op is operator.ne:
                found = self._call_special(a, "__eq__", b)
                if found is not _NOT_IMPLEMENTED:
                    return self.unary(operator.not_, found)
            if a is not b:
                self.note_different(a, b)
            return ConstantVariable((a is b) == (op is operator.eq))
        self._refuse_operands(given, a, b)

    def _call_special(
        self, obj: VariableTracker, name: str, other: VariableTracker
    ) -> VariableTracker | object:
        if isinstance(obj, UserDefinedObjectVariable):
            raw = class_attribute(obj.cls, name)
            if raw is _MISSING or raw is None:
                return _NOT_IMPLEMENTED
            if not isinstance(raw, types.FunctionType):
                return self._call_c_special(obj, name, raw, other)
            result = obj.bind(self, name, raw).call_function(self, [other], {})
        elif isinstance(obj, TensorVariable):
            if not hasattr(torch.Tensor, name):
                return _NOT_IMPLEMENTED
            if isinstance(other, UserDefinedObjectVariable):
                return _NOT_IMPLEMENTED
            result = obj.call_method(self, name, [other], {})
        else:
            return _NOT_IMPLEMENTED
        return self._unless_declined(result)

    def _unless_declined(self, result: VariableTracker) -> VariableTracker | object:
        if result.is_python_constant() and result.as_python_constant() is NotImplemented:
            return _NOT_IMPLEMENTED
        return result

    def _call_c_special(
        self, obj: UserDefinedObjectVariable, name: str, raw: object, other: VariableTracker
    ) -> VariableTracker | object:
        inner = getattr(other, "contents", None) or other
        if raw is getattr(object, name, None):
            return _NOT_IMPLEMENTED
        if obj.contents is None:
            unimplemented("operator", f"{obj!r}.{name}", "it is implemented in C")
        if own_class.for_class(obj.cls, obj.contents.python_type(), name) is not None:
            return self._unless_declined(obj.call_contents(self, name, [other], {}))
        for op, names in SPECIAL.items():
            if names[0] == name:
                found = self._builtin_binary(op, obj.contents, inner)
                return _NOT_IMPLEMENTED if found is None else found
        return obj.call_c_method(self, name, [other], {})

    def contains(self, item: VariableTracker, container: VariableTracker) -> VariableTracker:
        """item in container"""
        if isinstance(container, ConstantVariable):
            if item.is_python_constant():
                try:
                    return ConstantVariable(item.as_python_constant() in container.value)
                except TypeError as error:
                    raise_observed(self, error)
            unimplemented("contains", f"{item!r} in {container!r}", "the item is not known")
        if isinstance(container, UserDefinedObjectVariable):
            found = container.special(self, "__contains__")
            if found is None:
                kind = container.cls
                names = ("__iter__", "__getitem__")
                if all(class_attribute(kind, n) is _MISSING for n in names):
                    text = f"argument of type {kind.__name__!r} is not iterable"
                    raise_error(self, TypeError, text)
                hit = any(self.same_or_equal(x, item) for x in container.iterate(self))
                return ConstantVariable(hit)
            result = found.call_function(self, [item], {})
            return ConstantVariable(self.truth(result))
        if isinstance(container, IteratorVariable):
            hit = any(self.same_or_equal(x.realize(), item) for x in container.iterate(self))
            return ConstantVariable(hit)
        if isinstance(container, UserDefinedClassVariable):
            raw = class_attribute(type(container.value), "__contains__")
            if isinstance(raw, types.FunctionType):
                found = VariableTracker.build(self, raw).call_function(self, [container, item], {})
                return ConstantVariable(self.truth(found))
        return container.call_method(self, "__contains__", [item], {})

    # ---- attributes

    def getattr(self, obj: VariableTracker, name: str) -> VariableTracker:
        """obj.name"""
        return obj.getattr(self, name)

    def has_attribute(self, obj: VariableTracker, name: str) -> bool:
        """hasattr(obj, name)"""
        if isinstance(obj, TensorVariable) and name in ("grad_fn", "data", "grad"):
            return True
        if isinstance(obj, GetAttrVariable):
            return hasattr(obj.python_type(), name)
        try:
            obj.getattr(self, name)
        except ObservedException as error:
            if issubclass(error.value.python_type(), AttributeError):
                return False
            raise
        return True

    def attribute_of_builtin(self, obj: VariableTracker, name: str) -> VariableTracker:
        """An attribute of an object of a builtin class: a method, or the class."""
        cls = obj.python_type()
        if name == "__class__":
            return VariableTracker.build(self, cls)
        if name == "__doc__":
            return ConstantVariable(cls.__doc__)
        # Attributes of the class itself, such as __name__, are not those of its objects.
        if class_attribute(cls, name) is _MISSING:
            raise_error(self, AttributeError, f"{cls.__name__!r} object has no attribute {name!r}")
        return GetAttrVariable(obj, name)

    def class_attribute(self, cls: type, name: str) -> object | None:
        """What a class has under a name, unbound; None without."""
        found = class_attribute(cls, name)
        return None if found is _MISSING else found

    def bind_class_attribute(
        self, obj: VariableTracker, cls: type, name: str, raw: object
    ) -> VariableTracker:
        """A class attribute as read from an instance that is not a UserDefinedObjectVariable."""
        if isinstance(raw, types.FunctionType):
            return UserMethodVariable(VariableTracker.build(self, raw), obj)
        if isinstance(raw, property):
            return VariableTracker.build(self, raw.fget).call_function(self, [obj], {})
        if isinstance(raw, staticmethod):
            return VariableTracker.build(self, raw.__func__)
        if isinstance(raw, classmethod):
            owner = VariableTracker.build(self, cls)
            return UserMethodVariable(VariableTracker.build(self, raw.__func__), owner)
        if callable(raw):
            return GetAttrVariable(obj, name)
        return VariableTracker.build(self, raw)

    def overrides(self, vt: VariableTracker, *names: str) -> bool:
        """Whether the class of a value defines one of these methods in Python."""
        return any(
            isinstance(class_attribute(vt.python_type(), name), types.FunctionType)
            for name in names
        )

    # ---- items and iteration

    def getitem(self, obj: VariableTracker, key: VariableTracker) -> VariableTracker:
        """obj[key]"""
        return obj.getitem(self, key)

    def make_iterator(self, vt: VariableTracker) -> VariableTracker:
        """iter(vt)"""
        from torch._dynamo.variables.generators import GeneratorVariable

        if isinstance(vt, IteratorVariable | GeneratorVariable):
            return vt
        if isinstance(vt, UserDefinedObjectVariable):
            raw = class_attribute(vt.cls, "__iter__")
            if isinstance(raw, types.FunctionType):
                return self._checked_iterator(
                    vt.bind(self, "__iter__", raw).call_function(self, [], {}).realize()
                )
            if vt.contents is not None:
                return self.make_iterator(vt.contents)
        if isinstance(vt, BaseListVariable) and not isinstance(vt, RangeVariable):
            if isinstance(vt, DequeVariable):
                return DequeIteratorVariable(self, vt)
            return SequenceIteratorVariable(vt)
        kind = vt.python_type()
        try:
            cls = type(iter(kind())) if kind in (list, tuple, set, str, dict) else type(iter([]))
        except TypeError:
            cls = type(iter([]))
        values = vt.iterate(self)
        if isinstance(values, TableWalk):
            return TableIteratorVariable(values, cls, vt)
        return IteratorVariable(iter(values), cls)

    def make_reversed(self, sequence: BaseListVariable) -> VariableTracker:
        """reversed(sequence) of a list or tuple."""
        return BackwardIteratorVariable(sequence)

    def _checked_iterator(self, vt: VariableTracker) -> VariableTracker:
        if class_attribute(vt.python_type(), "__next__") is _MISSING:
            kind = vt.python_type().__name__
            raise_error(self, TypeError, f"iter() returned non-iterator of type {kind!r}")
        return vt

    def next(self, vt: VariableTracker) -> VariableTracker:
        """next(vt)"""
        if isinstance(vt, IteratorVariable):
            return vt.next(self)
        if isinstance(vt, UserDefinedObjectVariable):
            found = vt.special(self, "__next__")
            if found is None:
                raise_error(self, TypeError, f"{vt.cls.__name__!r} object is not an iterator")
            return found.call_function(self, [], {})
        if isinstance(vt, _NO_ITERATORS):
            kind = vt.python_type().__name__
            raise_error(self, TypeError, f"{kind!r} object is not an iterator")
        return vt.call_method(self, "__next__", [], {})

    def iterate_result(self, vt: VariableTracker) -> Iterator[VariableTracker]:
        """The values of an iterator that __iter__ returned."""
        if isinstance(vt, IteratorVariable):
            return vt.iterate(self)
        return self._iterate_by_next(self._checked_iterator(vt.realize()))

    def _iterate_by_next(self, vt: VariableTracker) -> Iterator[VariableTracker]:
        while True:
            try:
                value = self.next(vt)
            except ObservedException as error:
                if issubclass(error.value.python_type(), StopIteration):
                    return
                raise
            yield value

    def iterate_by_index(self, vt: VariableTracker) -> Iterator[VariableTracker]:
        """The old protocol: items 0, 1, 2, ... until IndexError."""
        index = 0
        while True:
            try:
                value = vt.getitem(self, ConstantVariable(index))
            except ObservedException as error:
                if issubclass(error.value.python_type(), IndexError):
                    return
                raise
            yield value
            index += 1

    def length(self, vt: VariableTracker) -> VariableTracker:
        """len(vt)"""
        if isinstance(vt, ConstantVariable):
            try:
                return ConstantVariable(len(vt.value))
            except TypeError as error:
                raise_observed(self, error)
        found = getattr(vt, "length", None)
        if found is not None:
            return found(self)
        if vt.is_python_constant():
            try:
                return ConstantVariable(len(vt.as_python_constant()))
            except TypeError as error:
                raise_observed(self, error)
        if class_attribute(vt.python_type(), "__len__") is not _MISSING:
            unimplemented("len", repr(vt), "the length of this object is not known while tracing")
        raise_error(self, TypeError, f"object of type {vt.python_type().__name__!r} has no len()")

    def pairs(self, vt: VariableTracker) -> list[tuple[VariableTracker, VariableTracker]]:
        """The pairs of a mapping."""
        return pairs_of(self, vt)

    def sort(self, items: Args, kwargs: Kwargs) -> Args:
        """sorted(items, key=, reverse=)"""
        key = kwargs.get("key")
        reverse = kwargs.get("reverse")
        if key is not None and key.is_python_constant() and key.as_python_constant() is None:
            key = None
        marks = items if key is None else [key.call_function(self, [item], {}) for item in items]
        ordered = sorted(
            zip(marks, items, strict=True),
            key=lambda pair: _Ordered(self, pair[0]),
            reverse=reverse is not None and self.truth(reverse),
        )
        return [item for _, item in ordered]


@functools.total_ordering
class _Ordered:
    """An item that Python's sort compares through the trace."""

    __slots__ = ("tx", "vt")

    def __init__(self, tx: DataModel, vt: VariableTracker) -> None:
        self.tx, self.vt = tx, vt

    def __lt__(self, other: _Ordered) -> bool:
        return self.tx.truth(self.tx.binary(operator.lt, self.vt, other.vt))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ordered) and self.tx.equal(self.vt, other.vt)
