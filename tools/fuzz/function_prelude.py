"""What random functions find around them: classes, functions, generators and contexts of every kind
that a program writes, as the text of a module."""

PRELUDE = """
import collections, contextlib, dataclasses, enum, functools, itertools, operator, typing
import torch
total = 0
log = []
class Box:
    shared = 2
    def __init__(self, value, extra=1):
        self.value = value
        self.extra = extra
    @property
    def double(self):
        return self.value * 2
    @property
    def level(self):
        return self.extra + 1
    @level.setter
    def level(self, by):
        log.append(("level", by))
        self.extra = by % 7
    @level.deleter
    def level(self):
        self.extra = 0
    @classmethod
    def make(cls, value):
        return cls(value, cls.shared)
    @staticmethod
    def plus(a, b):
        return a + b
    def bump(self, by=1):
        self.value = self.value + by
        self.extra += 1
        return self
    def __add__(self, other):
        return Box(self.value + (other.value if isinstance(other, Box) else other), self.extra)
    def __radd__(self, other):
        return self + other
    def __eq__(self, other):
        return isinstance(other, Box) and self.extra == other.extra
    __hash__ = None
    def __lt__(self, other):
        return self.extra < other.extra
    def __len__(self):
        return abs(self.extra)
    def __bool__(self):
        return self.extra != 3
    def __contains__(self, key):
        return key == self.extra
    def __iter__(self):
        yield self.extra
        yield from range(2)
    def __call__(self, by, *more, **named):
        return self.extra * by + len(more) - len(named)
    def __getitem__(self, key):
        if key > 3:
            raise IndexError("box")
        return self.extra + key
    def __setitem__(self, key, value):
        self.extra = key - value
    def __enter__(self):
        self.extra += 10
        return self
    def __exit__(self, kind, value, tb):
        self.extra -= 9
        return kind is KeyError
    def __repr__(self):
        return f"Box({self.extra})"
class Big(Box):
    def bump(self, by=1):
        super().bump(by + 1)
        return self
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return len(name)
@dataclasses.dataclass
class Point:
    a: int
    b: int = 2
    rest: list = dataclasses.field(default_factory=list)
    def __post_init__(self):
        self.sum = self.a + self.b
    def moved(self, by):
        return dataclasses.replace(self, a=self.a + by)
@dataclasses.dataclass(frozen=True, order=True)
class Fixed:
    a: int
    b: int = 1
class Slim:
    __slots__ = ("a", "b")
    def __init__(self, a):
        self.a = a
Pair = collections.namedtuple("Pair", "left right")
class Typed(typing.NamedTuple):
    one: int
    two: int = 5
class Color(enum.Enum):
    RED = 1
    BLUE = 2
class Odd(Exception):
    def __init__(self, number):
        super().__init__(number, "odd")
        self.number = number
def helper(a, b=2, *rest, scale=1, **named):
    return a * b + len(rest) * scale + len(named)
def numbers(n, stop=5):
    for i in range(n):
        if i == stop:
            return i
        got = yield i
        if got:
            yield got + 1
def careful(n):
    try:
        for i in range(n):
            try:
                yield i
            except ValueError as error:
                log.append(("thrown", len(error.args)))
                yield 100 + i
    finally:
        log.append("closed")
def chained(n):
    got = yield from numbers(n, 2)
    yield got
def twice(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs) + fn(*args, **kwargs)
    return inner
@twice
def counted(x, by=1):
    log.append(by)
    return x * by
def fact(n):
    return 1 if n < 2 else n % 5 * fact(n - 1)
def counter(start):
    def inc(by=1):
        nonlocal start
        start += by
        return start
    return inc
def globals_total(by):
    global total
    total += by
    return total
@contextlib.contextmanager
def noted(name):
    log.append("in " + name)
    try:
        yield name
    finally:
        log.append("out " + name)
class Quiet(contextlib.AbstractContextManager):
    def __init__(self, *kinds):
        self.kinds = kinds
    def __exit__(self, kind, value, tb):
        log.append(kind and kind.__name__)
        return kind is not None and issubclass(kind, self.kinds)
"""
