"""What random functions find around them: classes, functions, generators and contexts of every kind
that a program writes, as the text of a module. `log` is what they did, in order. `finals` is what
generators did when they were freed: when that is depends on who refers to them."""

PRELUDE = """
import abc, bisect, collections, collections.abc, contextlib, dataclasses, enum, functools, heapq
import itertools, math, operator, types, typing, weakref
import numbers as numbers_abc
import torch
total = 0
log = []
finals = []
registry = {}
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
    mine = finals
    try:
        for i in range(n):
            try:
                yield i
            except ValueError as error:
                log.append(("thrown", len(error.args)))
                yield 100 + i
    except GeneratorExit:
        mine.append("closed")
        raise
    else:
        log.append("exhausted")
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
class Ranged:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        return getattr(obj, self.name, 0) + 1
    def __set__(self, obj, value):
        if value > 40:
            raise ValueError(self.name, value)
        log.append(("set", value))
        setattr(obj, self.name, value)
    def __delete__(self, obj):
        delattr(obj, self.name)
class Lazy:
    def __init__(self, fn):
        self.fn = fn
    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        log.append("made")
        got = self.fn(obj)
        setattr(obj, self.fn.__name__, got)
        return got
class Base:
    made = 0
    def __init__(self, **named):
        self.named = sorted(named)
        type(self).made += 1
    def who(self):
        return ["Base"]
    @abc.abstractmethod
    def power(self, by):
        return by + 1
class Left(Base):
    def __init__(self, left=1, **named):
        super().__init__(**named)
        self.left = left
    def who(self):
        return ["Left", *super().who()]
class Right(Base):
    size = Ranged()
    def __init__(self, right=2, **named):
        super().__init__(**named)
        self.right = right
        self.size = right
    def who(self):
        return ["Right"] + super().who()
    def power(self, by):
        return super().power(by) * self.right
class Both(Left, Right):
    @Lazy
    def heavy(self):
        return self.left * 2 + self.size
    @functools.cached_property
    def cached(self):
        log.append("cached")
        return self.right + 1
    def __repr__(self):
        return f"Both({self.left})"
    def who(self):
        return ["Both", *super().who(), super(Left, self).who()[0]]
    def __setattr__(self, name, value):
        if name == "locked":
            raise AttributeError("locked", value)
        super().__setattr__(name, value)
    def __getattr__(self, name):
        if name == "ghost":
            return 13
        raise AttributeError(name)
class Vec:
    __slots__ = ("v", "__dict__")
    def __init__(self, *v):
        self.v = list(v)
    def _with(self, other, by):
        if isinstance(other, int):
            return Vec(*[by(a, other) for a in self.v])
        if not isinstance(other, Vec):
            return NotImplemented
        return Vec(*[by(a, b) for a, b in zip(self.v, other.v)])
    def __add__(self, other):
        return self._with(other, operator.add)
    __radd__ = __add__
    def __sub__(self, other):
        return self._with(other, operator.sub)
    def __rsub__(self, other):
        return -self + other
    def __mul__(self, other):
        return self._with(other, lambda a, b: a * b)
    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self, other))
    def __iadd__(self, other):
        self.v.append(other)
        return self
    def __neg__(self):
        return Vec(*(-a for a in self.v))
    def __invert__(self):
        return Vec(*reversed(self.v))
    def __abs__(self):
        return sum(map(abs, self.v))
    def __eq__(self, other):
        return self.v == other.v if isinstance(other, Vec) else NotImplemented
    def __hash__(self):
        return hash(tuple(self.v))
    def __lt__(self, other):
        return abs(self) < abs(other) if isinstance(other, Vec) else NotImplemented
    def __index__(self):
        return len(self.v)
    def __len__(self):
        return len(self.v)
    def __iter__(self):
        return iter(self.v)
    def __reversed__(self):
        return Walk(len(self.v))
    def __getitem__(self, key):
        return Vec(*self.v[key]) if isinstance(key, slice) else self.v[key]
    def __setitem__(self, key, value):
        self.v[key] = value
    def __delitem__(self, key):
        del self.v[key]
    def __format__(self, form):
        return f"<{len(self.v):{form}}>"
    def __str__(self):
        return "Vec:" + ",".join(map(str, self.v))
class Walk:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n
class Slimmer(Slim):
    __slots__ = ("c",)
    def __init__(self, a, c=4):
        super().__init__(a)
        self.c = c
    def __delattr__(self, name):
        log.append("del " + name)
        super().__delattr__(name)
class Filled(dict):
    def __missing__(self, key):
        self[key] = key * 2
        return self[key] + 1
    def __setitem__(self, key, value):
        log.append(("put", key))
        super().__setitem__(key, value)
class Stack(list):
    def push(self, *values):
        for value in values:
            super().append(value)
        return self
    def __len__(self):
        return super().__len__() + 100
@functools.total_ordering
@dataclasses.dataclass(eq=False)
class Rank:
    level: int = 1
    tags: set = dataclasses.field(default_factory=set, compare=False)
    kind: typing.ClassVar[int] = 6
    def __eq__(self, other):
        return self.level == other.level
    def __lt__(self, other):
        return self.level < other.level
@dataclasses.dataclass
class Deep(Point):
    c: dict = dataclasses.field(default_factory=dict)
    def __post_init__(self):
        super().__post_init__()
        self.sum += len(self.c)
class Turn:
    def __enter__(self):
        log.append("turn")
        return 4
    def __exit__(self, kind, value, tb):
        if kind is not None:
            raise Odd(len(value.args))
class Swallow:
    def __enter__(self):
        return self
    def __exit__(self, kind, value, tb):
        log.append((kind and kind.__name__, value is not None))
        return True
@contextlib.contextmanager
def guarded(kind):
    try:
        yield 5
    except kind as error:
        log.append(("guarded", len(error.args)))
    else:
        log.append("no error")
def averager():
    total = 0
    while True:
        got = yield total
        if got is None:
            return total * 10
        total += got
def relay(n):
    mine = finals
    try:
        result = yield from averager()
    except ValueError as error:
        log.append(("relay", error.args))
        result = yield -n
    except GeneratorExit:
        mine.append("left")
        raise
    yield result
    return n
def tree(n):
    if n > 0:
        yield from tree(n - 1)
        yield n
        yield from tree(n - 2)
def raising(n):
    for i in range(n):
        yield i
    raise Odd(n)
def maker(n):
    calls = 0
    def outer(by=n):
        nonlocal calls
        calls += 1
        def inner(v):
            nonlocal by
            by += v
            return by + calls
        return inner
    def seen():
        return calls
    return outer, seen
def remember(v, seen=[], *, known={}):
    seen.append(v)
    known[v] = known.get(v, 0) + 1
    return len(seen) + known[v]
def outer_error(n):
    try:
        return 10 // n
    except ZeroDivisionError as error:
        raise Odd(n) from error
def inner_error(n):
    try:
        return {}[n]
    except KeyError:
        return [][n]
@functools.singledispatch
def shown(v):
    return "?"
@shown.register
def _(v: int):
    return "int"
@shown.register(str)
def _(v):
    return "str"
class Host:
    def tag(self, v):
        log.append("tag")
        return v % 5
    def step(self, v):
        return v + 1
class Ring(collections.abc.Sequence):
    def __init__(self, *items):
        self.items = items
    def __len__(self):
        return len(self.items)
    def __getitem__(self, key):
        return self.items[key]
    def __eq__(self, other):
        return isinstance(other, Ring) and self.items == other.items
    def __repr__(self):
        return f"Ring{self.items}"
class Bag(collections.abc.MutableMapping):
    def __init__(self, **kept):
        self.kept = kept
    def __getitem__(self, key):
        return self.kept[key]
    def __setitem__(self, key, value):
        log.append(("put", key))
        self.kept[key] = value
    def __delitem__(self, key):
        del self.kept[key]
    def __iter__(self):
        return iter(self.kept)
    def __len__(self):
        return len(self.kept)
    def __repr__(self):
        return f"Bag({self.kept!r})"
class New:
    def __new__(cls, n):
        if n < 0:
            return n
        made = super().__new__(cls)
        made.n = n
        return made
    def __init__(self, n):
        log.append(("init", n))
        self.n += 1
class Meta(type):
    def __call__(cls, *args):
        log.append(cls.__name__)
        return super().__call__(*args)
    def __getitem__(cls, key):
        return key + 1
    def __len__(cls):
        return 4
    @property
    def label(cls):
        return len(cls.__name__)
class Made(metaclass=Meta):
    def __init__(self, v=1):
        self.v = v
class Registered:
    def __init_subclass__(cls, **named):
        super().__init_subclass__(**named)
        log.append("subclass")
class Num(int):
    def __add__(self, other):
        return Num(int(self) + other + 1)
    def __repr__(self):
        return f"Num({int(self)})"
class Row(tuple):
    def total(self):
        return sum(self)
class Level(enum.IntEnum):
    LOW = 1
    TOP = 2
class Perm(enum.IntFlag):
    R = 1
    W = 2
class Linked:
    def __init__(self, value, rest=None):
        self.value, self.rest = value, rest
    def __iter__(self):
        node = self
        while node is not None:
            yield node.value
            node = node.rest
    def total(self):
        return self.value + (self.rest.total() if self.rest else 0)
class Old:
    def __init__(self, n):
        self.n = n
    def __getitem__(self, key):
        if key >= self.n:
            raise IndexError(key)
        return key * 2
class Hidden:
    def __init__(self, v):
        self.v = v
    def __getattribute__(self, name):
        if name == "hidden":
            return 8
        return super().__getattribute__(name)
    def __bool__(self):
        return self.v > 0
class Part:
    def __init__(self, v):
        self.v = v
    def by(self, n, scale=1):
        return self.v // n * scale
    half = functools.partialmethod(by, 2)
    third = functools.partialmethod(by, 3, scale=2)
class Plain:
    @classmethod
    def bound(cls, v):
        return len(cls.__name__) + v
    @staticmethod
    def free(v):
        return v * 2
@dataclasses.dataclass(order=True, kw_only=True)
class Wide:
    a: object
    b: int = 2
    c: int = dataclasses.field(default=5, compare=False)
@dataclasses.dataclass(frozen=True)
class Icy:
    v: int
@functools.total_ordering
class Slotted:
    __slots__ = ("x", "y")
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return self.x == other.x
    def __lt__(self, other):
        return self.x < other.x
    def __repr__(self):
        return f"Slotted({self.x})"
class Checked:
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, obj, owner=None):
        return self if obj is None else obj.__dict__.get(self.name, -1)
    def __set__(self, obj, value):
        if value < 0:
            raise ValueError(self.name, value)
        obj.__dict__[self.name] = value
    def __delete__(self, obj):
        log.append("unset")
        obj.__dict__.pop(self.name, None)
class Watched:
    x = Checked()
    @property
    def y(self):
        return self.x + 1
class Proxy:
    def __init__(self, of):
        object.__setattr__(self, "of", of)
    def __getattr__(self, name):
        return getattr(self.of, name)
    def __setattr__(self, name, value):
        log.append(("proxy", name))
        setattr(self.of, name, value)
class Maths:
    def __init__(self, v):
        self.v = v
    def __neg__(self):
        return -self.v
    def __pos__(self):
        return self.v
    def __invert__(self):
        return ~self.v
    def __pow__(self, other):
        return self.v * other
    def __rpow__(self, other):
        return (other, self.v)
    def __floordiv__(self, other):
        return self.v // other
    def __mod__(self, other):
        return self.v % other
    def __divmod__(self, other):
        return (self // other, self % other)
    def __truediv__(self, other):
        return self.v / other
    def __lshift__(self, other):
        return self.v * 2**other
    def __isub__(self, other):
        self.v -= other
        return self
    def __imatmul__(self, other):
        return Maths(self.v * 10 + other)
    def __round__(self, digits=None):
        return round(self.v, digits)
    def __float__(self):
        return self.v / 2
    def __eq__(self, other):
        log.append("eq")
        return self.v == other if isinstance(other, int) else NotImplemented
    def __le__(self, other):
        return self.v <= other.v
class Nested:
    class Inner:
        def __init__(self, v):
            self.v = v
        def up(self):
            return self.v + 1
        def __str__(self):
            return f"inner {self.v}"
class Loud(ValueError):
    def __str__(self):
        return "loud " + str(self.args)
class Suppressing:
    def __init__(self, *kinds):
        self.kinds, self.seen = kinds, []
    def __enter__(self):
        return self
    def __exit__(self, kind, value, tb):
        self.seen.append((kind and kind.__name__, tb is not None))
        return kind is not None and issubclass(kind, self.kinds)
class Lines:
    def __init__(self, text):
        self.text = text
    def __iter__(self):
        for at, letter in enumerate(self.text):
            if letter == "c":
                return
            yield at, letter
class Pause:
    def __init__(self, v):
        self.v = v
    def __await__(self):
        got = yield self.v
        return got
class noted_call(contextlib.ContextDecorator):
    def __init__(self, fn=None):
        self.fn = fn
    def __call__(self, *args):
        with self:
            return self.fn(*args)
    def __enter__(self):
        log.append("enter")
        return self
    def __exit__(self, *info):
        log.append("exit")
        return False
def drive(coroutine):
    got = []
    try:
        value = coroutine.send(None)
        while True:
            got.append(value)
            value = coroutine.send(len(got))
    except StopIteration as stop:
        return got, stop.value
async def answer(n):
    total = 0
    for i in range(n % 3):
        total += await Pause(i)
    return total
async def fails(n):
    try:
        await Pause(n)
        raise Odd(n)
    except Odd as error:
        log.append(error.args)
        return await answer(n)
@functools.lru_cache
def squared(n):
    log.append("squared")
    return n * n
def frozen_sum(values):
    return sum(frozenset(values))
def print_args(*args, **named):
    log.append((args, named))
    return len(args) - len(named)
def inspect_args(a, b=1, *rest, c=2, **more):
    return [a, b, *rest, c, *more]
def delegating(n):
    try:
        got = yield from numbers(n, 3)
        log.append(("got", got))
        yield from [1, 2]
    except ValueError as error:
        log.append(error.args)
        raise KeyError("inside") from error
def swallowing():
    while True:
        try:
            yield "waiting"
        except (ValueError, KeyError) as error:
            log.append(type(error).__name__)
def stubborn():
    try:
        yield 1
    except GeneratorExit:
        yield 2
def nested_yield(n):
    first = yield n
    second = yield [first, (yield first)]
    return second
def restart():
    global total, finals
    total, finals = 0, []
    log.clear()
    registry.clear()
    for cls in (Base, Left, Right, Both):
        if cls is Base or "made" in vars(cls):
            cls.made = 0
    for cls in (Left, Right, Both):
        if "made" in vars(cls):
            del cls.made
    Box.shared = 2
    remember.__defaults__[0].clear()
    remember.__kwdefaults__["known"].clear()
    vars(helper).clear()
    squared.cache_clear()
"""
