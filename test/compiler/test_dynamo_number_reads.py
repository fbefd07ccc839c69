"""Numbers that vary from call to call: whatever a program does with one, compiled code does as
plain Python, whether the number has become a symbol by then or not."""

import collections
import functools
import itertools
import math
import operator

import pytest

import torch

INTS = ([3, 4, 5, 4, 3], [4, 3, -7, 0, 1, 2], [2, 3, 4, True, 5], [5, 6, 2**70, 7])
FLOATS = ([3.0, 4.0, 5.5], [2.5, -7.25, 0.0, -0.0], [1.5, 2.5, math.inf, 3.5], [2.5, 3, True])


def popped(n):
    items = [1, 2, 3, 4, 5]
    return items.pop(n % 5), items


def inserted(n):
    items = [1, 2, 3]
    items.insert(n % 4, n)
    items[n % 3 :] = [7, n]
    return items


def kept(n):
    line = collections.deque([1, 2, 3, 4], maxlen=abs(n) % 4)
    line.rotate(n % 3)
    return list(line), line.maxlen


def keyed(n):
    table = {3: "a", n: "b"}
    table.setdefault(n + 1, []).append(n)
    return table, table.pop(n), n in table, sorted({n, 3, 4}), collections.Counter([n, 3])[3]


def counted(n):
    return list(itertools.islice(itertools.count(n), 3)), list(enumerate("ab", n))


def caught(n):
    try:
        return [1, 2, 3][n], {4: 1}[n]
    except (IndexError, KeyError) as error:
        return repr(error)


def matched(n):
    match (n, [n, 2]):
        case (3, [a, 2]):
            return "three", a
        case (x, [_, *rest]) if x > 4:
            return "more", rest
        case _:
            return "other"


def closed(n):
    def more():
        nonlocal n
        n += 1
        return n

    return more(), more(), n


def shown(n):
    return f"{n:>6}|{n!r}|{n:.2f}", str(n), format(n, "e")


BOTH = {
    "complex": lambda n: (complex(n, 1), complex(1, n), complex(imag=n), complex(n)),
    "divided": lambda n: (divmod(n, 3), n // -2, n % -5, n / 4, 7 / n if n else None),
    "rounded": lambda n: (round(n, -1), abs(n), -n, n**2),
    "compared": lambda n: (n < 4, 1 < n < 5, n == 4.0, n in (3, 4), min(n, 4), max(4, n)),
    "truth": lambda n: (bool(n), not n, n and 5, n or 6),
    "kinds": lambda n: (type(n).__name__, isinstance(n, int), isinstance(n, float)),
    "sorted": lambda n: sorted([5, n, 4], key=lambda v: -v),
    "shown": shown,
    "hash": hash,
    "tensors": lambda n: (torch.ones(2) * n).tolist(),
}
WHOLE = {
    "bits": lambda n: (~n, n << 2, n >> 1, n & 6, n | 8, n ^ 3, n.bit_length()),
    "text": lambda n: (hex(n), f"{n:,}", str(n).zfill(5), int(str(n), 12)),
    "math": lambda n: (math.gcd(n, 12), math.isqrt(abs(n)), math.copysign(1, n)),
    "ranges": lambda n: (list(range(n % 7)), list(range(10))[n % 6 :: 2], [n] * (n % 3)),
    "reduced": lambda n: functools.reduce(operator.add, range(n % 6), n),
    "popped": popped,
    "inserted": inserted,
    "kept": kept,
    "keyed": keyed,
    "counted": counted,
    "caught": caught,
    "matched": matched,
    "closed": closed,
    "sizes": lambda n: (torch.zeros(n % 4 + 1, 2).shape, torch.arange(n % 6).tolist()),
    "views": lambda n: torch.arange(12.0).narrow(0, n % 5, 2).repeat(n % 3 + 1).tolist(),
}
CASES = [
    *(pytest.param(read, INTS, id=name) for name, read in {**BOTH, **WHOLE}.items()),
    *(pytest.param(read, FLOATS, id=f"{name} of floats") for name, read in BOTH.items()),
]


def outcome(fn, n):
    try:
        return repr(fn(n, torch.zeros(1))[1])
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
@pytest.mark.parametrize(("read", "orders"), CASES)
def test_numbers_that_vary_are_read_as_they_are(read, orders, broken):
    def fn(n, x):
        if broken:
            torch._dynamo.graph_break()
        return x + 1, read(n)

    for order in orders:
        torch._dynamo.reset()
        compiled = torch.compile(fn, backend="eager")
        assert [outcome(compiled, n) for n in order] == [outcome(fn, n) for n in order]


def test_contexts_made_before_a_break_share_their_graphs():
    def fn(x):
        x = x + 1
        context = torch.set_grad_enabled(True)
        torch._dynamo.graph_break()
        with context:
            x = x + 1
        return x

    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(fn, backend=counter)
    for _ in range(3):
        assert torch.equal(compiled(torch.zeros(2)), torch.full((2,), 2.0))
    assert counter.frame_count == 2


def test_integers_that_vary_have_no_end() -> None:
    def fn(x, n):
        try:
            found = n * (2**61 - 1) * 3, (n * 2**40) * (n * 2**30), n**50, n + 2**62, n << 2
        except OverflowError as error:
            found = str(error)
        return x + 1, found

    torch._dynamo.reset()
    compiled = torch.compile(fn, backend="eager")
    for n in (2, 3, 4, 2**40, -(2**61), 2**63):
        assert compiled(torch.ones(1), n)[1] == fn(torch.ones(1), n)[1]
