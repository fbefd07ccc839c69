"""Functions of symbolic expressions that sympy does not have: divisions with Python's rounding,
conversions between integers and floats, bit operations. Each computes on numbers and stays as it is
on symbols, apart from the few identities that keep expressions small."""

import math
import operator
from collections.abc import Callable

import sympy
from sympy import S


def _is_number(x: sympy.Basic) -> bool:
    return isinstance(x, sympy.Number) and x.is_finite is not False


class _Computed(sympy.Function):
    """A function with a value on numbers, given by `of_numbers`."""

    @classmethod
    def eval(cls, *args: sympy.Basic) -> sympy.Basic | None:
        """The value where it is known."""
        if all(_is_number(arg) for arg in args):
            return cls.of_numbers(*args)
        return cls.of_symbols(*args)

    @classmethod
    def of_numbers(cls, *args: sympy.Basic) -> sympy.Basic | None:
        """The value on finite numbers."""
        raise NotImplementedError(cls.__name__)

    @classmethod
    def of_symbols(cls, *args: sympy.Basic) -> sympy.Basic | None:
        """A simpler form, or None."""
        return None


class _ToInteger(_Computed):
    is_integer = True


class _ToReal(_Computed):
    is_real = True
    is_integer = None


def simple_floordiv_gcd(p: sympy.Basic, q: sympy.Basic) -> sympy.Basic:
    """A common factor of two expressions, seen from their terms alone: cheap, not the greatest."""
    common: sympy.Basic = math.gcd(_content(p), _content(q))
    left, right = _term_factors(p), _term_factors(q)
    for factor in left[0]:
        if all(factor in term for term in (*left, *right)):
            common = common * factor
    return sympy.Integer(common) if isinstance(common, int) else common


def _content(e: sympy.Basic) -> int:
    """The greatest common divisor of the integer factors of all terms."""
    return math.gcd(
        *(
            abs(int(term.as_coeff_Mul()[0])) if _whole(term) else 1
            for term in sympy.Add.make_args(e)
        )
    )


def _whole(term: sympy.Basic) -> bool:
    return term.as_coeff_Mul()[0].is_Integer


def _term_factors(e: sympy.Basic) -> list[tuple]:
    return [
        tuple(f for f in sympy.Mul.make_args(term) if not f.is_number)
        for term in sympy.Add.make_args(e)
    ]


class FloorDiv(_ToInteger):
    """a // b of integers."""

    nargs = (2,)
    precedence = 35

    @property
    def base(self) -> sympy.Basic:
        """The dividend."""
        return self.args[0]

    @property
    def divisor(self) -> sympy.Basic:
        """The divisor."""
        return self.args[1]

    def _sympystr(self, printer: sympy.printing.StrPrinter) -> str:
        level = sympy.printing.precedence.PRECEDENCE["Atom"] - 0.5
        base, divisor = (printer.parenthesize(arg, level) for arg in self.args)
        return f"({base}//{divisor})"

    @classmethod
    def eval(cls, base: sympy.Basic, divisor: sympy.Basic) -> sympy.Basic | None:
        """Division by zero raises; infinite operands end at the matching infinity."""
        if divisor.is_zero:
            raise ZeroDivisionError("division by zero")
        if base is S.NaN or divisor is S.NaN:
            return S.NaN
        if base.is_zero:
            return S.Zero
        if base.is_infinite or divisor.is_infinite:
            return _infinite_quotient(base, divisor)
        return super().eval(base, divisor)

    @classmethod
    def of_numbers(cls, base: sympy.Basic, divisor: sympy.Basic) -> sympy.Basic | None:
        """Python's //."""
        if base.is_Integer and divisor.is_Integer:
            return sympy.Integer(int(base) // int(divisor))
        return sympy.Integer(math.floor(float(base) / float(divisor)))

    @classmethod
    def of_symbols(cls, base: sympy.Basic, divisor: sympy.Basic) -> sympy.Basic | None:
        """Whole multiples are taken out and common factors cancelled."""
        if divisor == 1 and base.is_integer:
            return base
        if divisor == -1 and base.is_integer:
            return -base
        if base == divisor:
            return S.One
        if isinstance(base, FloorDiv) and base.args[1].is_positive and divisor.is_positive:
            return FloorDiv(base.args[0], base.args[1] * divisor)
        if isinstance(base, sympy.Add) and divisor.is_Integer:
            whole = [t for t in base.args if (t / divisor).is_integer]
            if whole:
                rest = base - sympy.Add(*whole)
                return sympy.Add(*(t / divisor for t in whole)) + FloorDiv(rest, divisor)
        common = simple_floordiv_gcd(base, divisor)
        if common != 1:
            return FloorDiv(sympy.cancel(base / common), sympy.cancel(divisor / common))
        return None


def _infinite_quotient(base: sympy.Basic, divisor: sympy.Basic) -> sympy.Basic | None:
    from torch.utils._sympy.numbers import int_oo

    if divisor.is_infinite:
        if base.is_infinite:
            return S.NaN
        same = base.is_extended_positive == divisor.is_extended_positive
        return S.Zero if same else S.NegativeOne
    if base.is_extended_positive is None or divisor.is_extended_positive is None:
        return None
    same = base.is_extended_positive == divisor.is_extended_positive
    if base in (S.Infinity, S.NegativeInfinity):
        return S.Infinity if same else S.NegativeInfinity
    return int_oo if same else -int_oo


class CleanDiv(FloorDiv):
    """A division that is known to leave nothing."""


class CeilDiv(_ToInteger):
    """a / b rounded up: a floor division of integers."""

    nargs = (2,)

    @classmethod
    def eval(cls, base: sympy.Basic, divisor: sympy.Basic) -> sympy.Basic:
        """Never kept as it is."""
        if sympy.cancel(base / divisor).is_integer:
            return CleanDiv(base, divisor)
        if divisor.is_negative:
            return -FloorDiv(-base, divisor)
        return FloorDiv(base + divisor - 1, divisor)


class ModularIndexing(_ToInteger):
    """(base // divisor) % modulus."""

    nargs = (3,)

    @classmethod
    def of_numbers(
        cls, base: sympy.Basic, divisor: sympy.Basic, modulus: sympy.Basic
    ) -> sympy.Basic | None:
        """By Python's operators."""
        return sympy.Integer((int(base) // int(divisor)) % int(modulus))

    @classmethod
    def of_symbols(
        cls, base: sympy.Basic, divisor: sympy.Basic, modulus: sympy.Basic
    ) -> sympy.Basic | None:
        """Of 0, or modulo 1, 0; multiples of the modulus fall out."""
        if base == 0 or modulus == 1:
            return S.Zero
        if isinstance(base, sympy.Add) and divisor.is_Integer and modulus.is_Integer:
            kept = [t for t in base.args if not (t / (divisor * modulus)).is_integer]
            if len(kept) != len(base.args) and all(t.is_nonnegative for t in base.args):
                return ModularIndexing(sympy.Add(*kept), divisor, modulus)
        return None


class _Remainder(_ToInteger):
    nargs = (2,)

    @classmethod
    def of_numbers(cls, p: sympy.Basic, q: sympy.Basic) -> sympy.Basic | None:
        """Python's %."""
        if q == 0:
            raise ZeroDivisionError("Modulo by zero")
        if p.is_Integer and q.is_Integer:
            return sympy.Integer(int(p) % int(q))
        return sympy.Float(float(p) % float(q))

    @classmethod
    def of_symbols(cls, p: sympy.Basic, q: sympy.Basic) -> sympy.Basic | None:
        """0 where q divides p, p where it is smaller."""
        if q == 0:
            raise ZeroDivisionError("Modulo by zero")
        if p == 0 or p in (q, -q) or q == 1:
            return S.Zero
        if q == 2 and p.is_even is not None and p.is_odd is not None:
            return S.Zero if p.is_even else S.One
        if (p / q).is_integer:
            return S.Zero
        if p.is_nonnegative and (p < q) == True:  # noqa: E712
            return p
        return None


class Mod(_Remainder):
    """p % q of numbers that are not negative."""

    precedence = 35

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[1].is_positive else None


class PythonMod(_Remainder):
    """p % q with the sign of q, as Python's."""

    precedence = 35

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[1].is_positive else None

    def _eval_is_nonpositive(self) -> bool | None:
        return True if self.args[1].is_negative else None


class Where(_Computed):
    """a where c holds, else b."""

    nargs = (3,)

    def _eval_is_integer(self) -> bool | None:
        return True if self.args[1].is_integer and self.args[2].is_integer else None

    @classmethod
    def eval(cls, c: sympy.Basic, a: sympy.Basic, b: sympy.Basic) -> sympy.Basic | None:
        """Decided by a constant condition."""
        if c == True:  # noqa: E712
            return a
        return b if c == False else None  # noqa: E712


# ---- powers and shifts
def safe_pow(base: sympy.Basic, exponent: sympy.Basic) -> sympy.Basic | None:
    """base ** exponent of integers; infinite where the result leaves 64 bits."""
    from torch.utils._sympy.numbers import int_oo

    negative = base < 0 and exponent % 2 == 1
    base = abs(base)
    if base > 1 and exponent * math.log2(base) > 64:
        return -int_oo if negative else int_oo
    return sympy.Integer((-1 if negative else 1) * int(base) ** int(exponent))


class PowByNatural(_ToInteger):
    """An integer to a power that is not negative."""

    nargs = (2,)
    precedence = 50

    @classmethod
    def of_numbers(cls, base: sympy.Basic, exponent: sympy.Basic) -> sympy.Basic | None:
        """Python's **."""
        return safe_pow(int(base), int(exponent))

    @classmethod
    def of_symbols(cls, base: sympy.Basic, exponent: sympy.Basic) -> sympy.Basic | None:
        """A small constant exponent is written out."""
        if exponent.is_Integer and 0 <= exponent <= 64:
            return sympy.Pow(base, exponent)
        return None


class FloatPow(_ToReal):
    """A float to a power."""

    nargs = (2,)
    precedence = 60

    @classmethod
    def of_numbers(cls, base: sympy.Basic, exponent: sympy.Basic) -> sympy.Basic | None:
        """Python's **."""
        return sympy.Float(float(base) ** float(exponent))


class LShift(_ToInteger):
    """base << shift."""

    nargs = (2,)

    @classmethod
    def eval(cls, base: sympy.Basic, shift: sympy.Basic) -> sympy.Basic | None:
        """A product with a power of two."""
        if shift.is_negative:
            raise ValueError("negative shift count")
        return base * 2**shift if shift.is_Integer else None


class RShift(_ToInteger):
    """base >> shift."""

    nargs = (2,)

    @classmethod
    def eval(cls, base: sympy.Basic, shift: sympy.Basic) -> sympy.Basic | None:
        """A division by a power of two."""
        if shift.is_negative:
            raise ValueError("negative shift count")
        return FloorDiv(base, 2**shift) if shift.is_Integer else None


# ---- divisions to floats
class FloatTrueDiv(_ToReal):
    """a / b of floats."""

    nargs = (2,)
    precedence = 35

    @classmethod
    def of_numbers(cls, base: sympy.Basic, divisor: sympy.Basic) -> sympy.Basic | None:
        """Python's /."""
        if divisor == 0:
            raise ZeroDivisionError("division by zero")
        return sympy.Float(float(base) / float(divisor))


class IntTrueDiv(_ToReal):
    """a / b of integers, rounded once."""

    nargs = (2,)
    precedence = 35

    @classmethod
    def of_numbers(cls, base: sympy.Basic, divisor: sympy.Basic) -> sympy.Basic | None:
        """Python's / of integers."""
        if divisor == 0:
            raise ZeroDivisionError("division by zero")
        if base.is_Integer and divisor.is_Integer:
            return sympy.Float(int(base) / int(divisor))
        return sympy.Float(float(base) / float(divisor))

    @classmethod
    def of_symbols(cls, base: sympy.Basic, divisor: sympy.Basic) -> sympy.Basic | None:
        """A finite number by infinity is 0."""
        if divisor.is_zero:
            raise ZeroDivisionError("division by zero")
        return S.Zero if _is_number(base) and divisor.is_infinite else None


# ---- conversions
def _rounding(name: str, kind: type, compute: Callable[[float], float], doc: str) -> type:
    def of_numbers(cls: type, number: sympy.Basic) -> sympy.Basic | None:
        if number.is_Integer and kind is _ToInteger:
            return number
        value = compute(float(number))
        return sympy.Integer(value) if kind is _ToInteger else sympy.Float(value)

    def of_symbols(cls: type, number: sympy.Basic) -> sympy.Basic | None:
        from torch.utils._sympy.numbers import int_oo

        if kind is _ToInteger and number in (S.Infinity, int_oo):
            return int_oo
        if kind is _ToInteger and number in (S.NegativeInfinity, -int_oo):
            return -int_oo
        return number if kind is _ToInteger and number.is_integer else None

    body = {
        "__doc__": doc,
        "__module__": __name__,
        "of_numbers": classmethod(of_numbers),
        "of_symbols": classmethod(of_symbols),
        "nargs": (1,),
    }
    return type(name, (kind,), body)


FloorToInt = _rounding("FloorToInt", _ToInteger, math.floor, "The floor of a float as an integer.")
CeilToInt = _rounding("CeilToInt", _ToInteger, math.ceil, "The ceiling of a float as an integer.")
TruncToInt = _rounding("TruncToInt", _ToInteger, math.trunc, "A float cut to an integer.")
RoundToInt = _rounding("RoundToInt", _ToInteger, round, "A float rounded half to even.")
TruncToFloat = _rounding("TruncToFloat", _ToReal, math.trunc, "A float without its fraction.")


class RoundDecimal(_ToReal):
    """A float rounded to a number of digits."""

    nargs = (2,)

    @classmethod
    def of_numbers(cls, number: sympy.Basic, digits: sympy.Basic) -> sympy.Basic | None:
        """Python's round."""
        value = round(int(number) if number.is_Integer else float(number), int(digits))
        return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value)


class ToFloat(_ToReal):
    """An integer as a float."""

    nargs = (1,)

    @classmethod
    def eval(cls, number: sympy.Basic) -> sympy.Basic | None:
        """Infinities become those of floats."""
        from torch.utils._sympy.numbers import int_oo

        if number in (S.Infinity, S.NegativeInfinity):
            return number
        if number in (int_oo, -int_oo):
            return S.Infinity if number == int_oo else S.NegativeInfinity
        return sympy.Float(int(number)) if number.is_Integer else None


class Identity(sympy.Function):
    """Keeps sympy from looking inside its argument."""

    precedence = 10

    def __repr__(self) -> str:
        return f"Identity({self.args[0]})"

    def _eval_is_real(self) -> bool | None:
        return self.args[0].is_real

    def _eval_is_integer(self) -> bool | None:
        return self.args[0].is_integer


class IsNonOverlappingAndDenseIndicator(_ToInteger):
    """1 where sizes, then strides, are those of a tensor whose elements fill a block of memory."""

    @classmethod
    def eval(cls, *args: sympy.Basic) -> sympy.Basic | None:
        """Decided on integers."""
        if len(args) % 2 != 0:
            raise ValueError(f"expected sizes and as many strides, got {len(args)} numbers")
        if not all(arg.is_Integer for arg in args):
            return None
        ndim = len(args) // 2
        pairs = sorted(
            (stride, size)
            for size, stride in zip(args[:ndim], args[ndim:], strict=True)
            if size != 1
        )
        expected = 1
        for stride, size in pairs:
            if stride != expected:
                return S.Zero
            expected *= size
        return S.One


# ---- extrema
class _Extremum(_Computed):
    """The smallest or largest of several expressions, without those that another one beats."""

    is_commutative = True
    largest = True

    def __new__(cls, *args: sympy.Basic, **kwargs: object) -> sympy.Basic | None:
        flat: list = []
        for arg in map(sympy.sympify, args):
            flat.extend(arg.args if isinstance(arg, cls) else (arg,))
        kept: list = []
        for arg in flat:
            if not any(cls._beats(other, arg) for other in kept):
                kept = [other for other in kept if not cls._beats(arg, other)] + [arg]
        if len(kept) == 1:
            return kept[0]
        out = sympy.Expr.__new__(cls, *sorted(kept, key=sympy.default_sort_key))
        out.unique_summations_symbols = _unique_symbols(kept)
        return out

    @classmethod
    def _beats(cls, a: sympy.Basic, b: sympy.Basic) -> bool:
        """Whether b needs no mention beside a."""
        if a == b:
            return True
        relation = a >= b if cls.largest else a <= b
        return relation == True  # noqa: E712

    def _eval_is_integer(self) -> bool | None:
        return True if all(arg.is_integer for arg in self.args) else None

    def _eval_is_positive(self) -> bool | None:
        return self._sign([arg.is_positive for arg in self.args])

    def _eval_is_nonnegative(self) -> bool | None:
        return self._sign([arg.is_nonnegative for arg in self.args])

    def _sign(self, known: list) -> bool | None:
        enough, all_ = (any, all) if self.largest else (all, any)
        if enough(value is True for value in known):
            return True
        return False if all_(value is False for value in known) else None


def _unique_symbols(args: list) -> set | None:
    """The symbols of sums in which every symbol occurs once in all of them, else None."""
    seen: set = set()
    for arg in args:
        terms = sympy.Add.make_args(arg)
        if len(terms) < 2 or not all(term.is_Symbol for term in terms):
            return None
        if seen & set(terms):
            return None
        seen |= set(terms)
    return seen


class Max(_Extremum):
    """The largest."""

    largest = True

    @classmethod
    def of_numbers(cls, *args: sympy.Basic) -> sympy.Basic | None:
        """Of numbers."""
        return max(args)


class Min(_Extremum):
    """The smallest."""

    largest = False

    @classmethod
    def of_numbers(cls, *args: sympy.Basic) -> sympy.Basic | None:
        """Of numbers."""
        return min(args)


# ---- functions of the math module and of bits
def make_opaque_unary_fn(name: str) -> type:
    """OpaqueUnaryFn_NAME: the function of Python's math module, by its value on numbers alone."""
    plain = getattr(math, name)

    def of_numbers(cls: type, x: sympy.Basic) -> sympy.Basic | None:
        try:
            return sympy.Float(plain(float(x)))
        except OverflowError:
            return S.Infinity
        except ValueError:
            return None

    def of_symbols(cls: type, x: sympy.Basic) -> sympy.Basic | None:
        if x in (S.Infinity, S.NegativeInfinity) or x.is_infinite:
            try:
                return sympy.Float(plain(float(x)))
            except (OverflowError, ValueError):
                return None
        return None

    body = {
        "__module__": __name__,
        "__doc__": f"math.{name}.",
        "of_numbers": classmethod(of_numbers),
        "of_symbols": classmethod(of_symbols),
        "nargs": (1,),
    }
    return type(f"OpaqueUnaryFn_{name}", (_ToReal,), body)


def make_opaque_bitwise_fn(name: str, real_op_name: str) -> type:
    """BitwiseFn_NAME of integers and truth values."""
    plain = getattr(operator, real_op_name)

    def eval_(cls: type, a: sympy.Basic, b: sympy.Basic) -> sympy.Basic | None:
        truths = [arg in (S.true, S.false) for arg in (a, b)]
        if all(truths):
            return sympy.sympify(plain(bool(a), bool(b)))
        if all(truth or arg.is_Integer for truth, arg in zip(truths, (a, b), strict=True)):
            values = [
                int(bool(arg)) if truth else int(arg)
                for truth, arg in zip(truths, (a, b), strict=True)
            ]
            return sympy.Integer(plain(*values))
        return None

    body = {
        "__module__": __name__,
        "__doc__": f"operator.{real_op_name}.",
        "eval": classmethod(eval_),
        "nargs": (2,),
    }
    return type(f"BitwiseFn_{name}", (_ToInteger,), body)


_MATH = "sqrt cos cosh sin sinh tan tanh asin acos atan exp log log2 asinh"
globals().update({f"OpaqueUnaryFn_{name}": make_opaque_unary_fn(name) for name in _MATH.split()})
for _name in ("and", "or", "xor"):
    _real = _name if _name == "xor" else f"{_name}_"
    globals()[f"BitwiseFn_bitwise_{_name}"] = make_opaque_bitwise_fn(f"bitwise_{_name}", _real)
