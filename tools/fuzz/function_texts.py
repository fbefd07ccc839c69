"""Texts of random Python functions, written from templates. A template is one statement; in it

    $n $t $c $w         an expression: number, tensor, condition, text
    $N $T $L $D $E $B $P $W   the name of a variable: int, tensor, list, dict, set, Box, Point, text
    $+N ... $+W         a new variable of that kind
    $f $g $a ...        a new name of no kind, the same in the whole template
    $0 ... $9           a number from 0 to that one

and a line `@1-3` stands for a block of one to three statements, `%1` for one of a nested function.
Expressions are parted by two spaces, statements by lines and compound statements by empty lines.
"""

from __future__ import annotations

import random
import re

from function_prelude import PRELUDE

NUMBERS = """
($n + $n)  ($n - $n)  ($n * $n)  ($n // $n)  ($n % $n)  ($n & 7)  ($n ^ $n)  (-$n)  (~$n)
($n % 5 << $2)  max($n, $n)  min([$n, $n, $n])  abs($n)  ($n if $c else $n)  divmod($n, $n)[1]
pow($n % 7, 2)  sum(i for i in range($n))  sum([i * j for i in range(3) for j in range(i)])
len([i for i in range(4) if i != $n])  len({i % 2 for i in range($n)})
len({k: v for k, v in $D.items()})  (lambda a, b=$n: a - b)($n)
(lambda *a, **k: len(a) + len(k))(*$L, z=$n)  sorted([$n, $n, $n], key=lambda v: -v)[0]
sorted([$n, $n], reverse=True)[-1]  functools.reduce(operator.add, [$n, $n], $n)
functools.partial(helper, $n, scale=2)(3, 4, q=1)  int(str($n)[-1])  int(float($n))
ord(chr($n % 90 + 33))  hash(True)  int($c)  round($n / 3)  list(numbers($n))[-1]
{1: $n, 2: $n}[$3]  [$n, $n][$n]  ($n, $n)[::-1][0]  [$n, $n, 3][-2:][0]
next(itertools.islice(itertools.count($n), 2, None))  sum(itertools.accumulate([1, $n]))
len(list(itertools.product(range(2), range($3))))
sum(a * b for a, b in zip($L[:0] + [1, 2], (3, $n)))  $B[$n]  $B($n)  $B($n, 1, *[2], q=$n)
$B.extra  $B.level  len($B)  sum($B)  $B.shared  $P.a  $P.sum  $P.moved($n).a  len($P.rest)
Fixed($n).b  Pair($n, $n).right  Typed($n)[1]  Color(1).value  counter($n)($n)  fact($5)
next(counted($n, $2) for _ in range(2))  globals_total($n)  getattr($B, 'nothing', $n)
getattr($P, 'a')  len($W)  $W.count('a')  $W.find('b')  len($w)  len($E)  len($E | {$n})
len($E & {1, 2, $n})  len($E - {1})  sum($E)  $D.get($3, 7)  len($D)  sum($D)
max($D.values(), default=$n)  len($D | {$n: 1})  next(iter($D), $n)  $L.count($n)  len($L)
len(list(filter(None, [$n, 0, 1])))  sum(map(lambda v: v + 1, [$n, 2]))
len(list(zip(*[[1, 2], [3, 4]])))  sum(1 for _ in chained($4))
len(' '.join(str(i) for i in range($3)))  any([$n, 0]) + all([$n, 1])  [*range($3), $n][0]
(*[1, 2], $n)[-1]  sum(({'a': 1} | {'b': $n}).values())  dict(a=1, **{'b': $n})['b']
dict(zip('ab', [1, $n]))['b']
"""
TENSORS = """
($t + $t)  ($t * $n)  ($t - $t)  torch.sin($t)  $t.abs()  (-$t)  torch.max($t, $t)
$t.clamp(-2, 2)  helper($t, $3)  helper($t, 2, 5, *[1, 2], scale=$n, q=3)  $B.value  $B.double
Box.plus($t, $t)  torch.stack([$t, $t]).sum(0)  sum([$t, $t])  Big.make($t).bump().value
torch.where($t > 0, $t, $t)  counted($t, by=$n)  (lambda v: v + $n)($t)  [$t, $t][$1]
($t if $c else $t)  (Box($t) + $t).value  functools.reduce(operator.add, [$t, $t])
Pair($t, $n).left  {'k': $t}['k']  torch.cat([$t[:1], $t[1:]])  next(v for v in [$t, $t])
max([$t, $t], key=lambda v: $n)  torch.full_like($t, $n)
"""
TESTS = """
$n < $n  $n == $n  $n != $n  $n >= $n  $n in $D  $n not in $E  $n < $n < 5  not $n  ($n and $n)
($n or $n)  isinstance($B, Big)  isinstance($n, (str, int))  $L  $D  $E  $B  hasattr($B, 'extra')
hasattr($P, 'zz')  $B == $B  $B is $B  $B is not None  $B < $B  $P == $P  $P is $P
Fixed($n) < Fixed($n)  Pair(1, $n) == (1, 2)  $n in $B  any(i == $n for i in range(3))
all($n for _ in range(2))  $W == $W  'a' in $W  $W.startswith('b')  callable($B)
Color.RED is Color(1)  {1, $n} <= {1, 2, 3}  [$n, 1] < [$n, 2]  issubclass(type($B), Box)
"""
TEXTS = """
str($n)  f'{$N}'  f'{$N:>4}|{$N!r:<3}|{$W}'  f'{$B!r}'  f'{$N:0{$3}d}'  '%d-%s' % ($n, $w)
'{}:{a}'.format($n, a=$w)  $w.upper()  ($w + $w)  $w[::-1]  '-'.join([$w, $w])
$w.replace('a', 'bb')  repr($n)  repr([$n, $w])  type($B).__name__  ($w * $2)  str($c)
','.join(sorted($w))  $w.strip('b').center(5, '*')  $w.partition('a')[0]  str(($n, $w))
"""
SIMPLE = r"""
$+N = $n
$+N = $n
$+T = $t
$+T = $t
$+T, $+T = $t, $t
$+N, $+N = ($n, $n)
$+N, *$+L = [$n, $n, $n]
*$+L, $+N = range($4)
($+N, $+N), $+T = ($n, $n), $t
$+T = ($t).clone()\n$T.add_($n)
$+W = $w
$+L = [$n, $n]
$+L = list($L)
$+L = $L + [$n]
$+L = $L[1:]
$+L = $L
$+L = [*$L, $n, *range($2)]
$+L = [i * $n for i in range($4) if i % 2]
$+L = [[i, j] for i in range($2) for j in range(i)]
$+L = list(map(lambda v: v * 2, range($3)))
$+L = list(reversed([$n, $n]))
$L.append($n)
$L.append($t)
$L.insert($1, $n)
$L.pop()
$L.pop($1)
$L[$2] = $n
$L[-1] = $t
$L[$1:$2] = [$n, $n]
$L.reverse()
$L.extend(i for i in range($3))
$L.extend([$t])
del $L[$2]
$L.clear()
$L.remove($n)
$+D = {i: i * $n for i in range(3)}
$+D = dict($D)
$+D = {**$D, 9: $n}
$+D = $D | {4: $n}
$+D = collections.defaultdict(int); $D[$3] += $n
$+D = collections.OrderedDict($D); $D.move_to_end(next(iter($D)))
$+D = collections.Counter([1, $n, 1])
$+D = dict.fromkeys(range($3), $n)
$D[$3] = $n
$D[$3] += $n
$D.pop($3, None)
$D.pop($3)
del $D[$3]
$D.setdefault($3, $n)
$D.update({$3: $n}, **{})
$D.popitem()
$+L = list($D.items())
$+L = sorted($D.keys())
$+E = {$n, $n}
$+E = set($D)
$+E = {i % 3 for i in range($5)}
$+E = $E | {$n}
$+E = $E ^ {$n, 1}
$E.add($n)
$E.discard($n)
$E.remove($n)
$E.update([$n, $n])
$E.clear()
$+L = sorted($E)
$+B = Box($t, $n)
$+B = Big.make($t)
$+B = $B
$+B = $B + $t
$+B = $t.sum() * 0 + $B
$B.bump($n)
$B.extra = $n
$B.value = $t
$B.extra -= 1
$B.level = $n
$B.level += $n
del $B.level
$B[$n] = $n
setattr($B, 'later', $n)
$B.later = $n; del $B.later
$+P = Point($n, $n)
$+P = Point($n, rest=[$n])
$+P = $P.moved($n)
$+P = dataclasses.replace($P, b=$n)
$P.a = $n
$P.rest.append($n)
$P.b, $P.a = $P.a, $P.b
$+N, $+N = dataclasses.astuple($P)[:2]
$a = Fixed($n, $n); log.append($a)\n$a.b = 3
$a = Slim($n); $a.b = $n; log.append($a.a + $a.b)
$a = Slim($n); log.append($a.b)
$a = Pair($n, $n)._replace(left=$n); $+N, $+N = $a
$a = {Fixed($2): $n, Fixed(1): 2}; log.append(len($a))
$a = iter($L); log.append(next($a, 0)); log.append(len(list($a)))
$a = numbers($4, $n)\n$+N = next($a, 0) + sum($a)
$a = numbers($4)\n$+N = next($a) + $a.send($n) + sum($a)
$a = careful($3)\nlog.append(next($a))\nlog.append($a.throw(ValueError('t')))\n$a.close()
$a = chained($4)\n$+L = list($a)
$a = counter($n)\n$a($n)\n$+N = $a()
$a = [lambda v=i: v + $n for i in range(3)]\n$+N = sum(g() for g in $a)
$a = [lambda: i + $n for i in range(3)]\n$+N = $a[0]()
$a = (v * 2 for v in range($4))\n$+N = next($a, -1)\nlog.append(list($a))
log.append($n)
log.append($w)
log.append(($w, $n, {$n: $w}))
globals_total($n)
log.append((walrus := $n) + walrus)
log.append([last := i for i in range(3)]); log.append(last)
assert $c, $w
$+N = (lambda *args, k=$n, **named: len(args) * k + len(named))(*$L, **{'z': 1})
$+T = functools.partial(helper, scale=$n)($t, $3)
log.append([f'{i}{v!s:>3}' for i, v in enumerate([$n, $n])])
"""
REBINDING = r"""
$N += $n
$N -= $n
$N *= $3
$T = $t
$T = $T + $n
$L += [$n]
$L = $L[:2]
$D |= {$n: 1}
$E |= {$n}
$B += $t
$W += $w
$N, $N = $N, $N
"""
NESTED = """
if $c:
    @1-3

if $c:
    @1-2
else:
    @1-2

if $c:
    @1
elif $c:
    @1
else:
    @1-2

if $c: return $t

if $c: return $t, $n

for $+N in range($3):
    @1-3

for $+N in numbers($4):
    @1-2

for $+N, _v in enumerate($L[:3]):
    @1-2

for $+N in list($D):
    @1-2

for $+N in $D:
    @1

for $+N, _w in zip(range(3), $L):
    @1-2

for $+N in sorted($E):
    @1-2
else:
    @1

for $+N in map(lambda v: v + 1, (1, 2)):
    @1-2

for $+N in $B:
    @1-2

for $+N, $+N in [(1, $n), (2, $n)]:
    @1-2
    if $c: break
else:
    @1

for $+N in range(3):
    if $c: continue
    @1-2

for _ in range(2):
    for $+N in range($2):
        @1
    if $c: break

$a = 0
while $a < $3:
    $a += 1
    @1-2

$a = 0
while True:
    $a += 1
    if $a > 2 or $c: break
    @1-2

$a = 3
while $a:
    $a -= 1
    @1
else:
    @1

try:
    @1-2
except $k as error:
    log.append((type(error).__name__, len(error.args)))
    @1

try:
    @1-2
    if $c: raise $x
except $k as error:
    log.append(error.args)
    @1

try:
    @1
    raise $x
except $k:
    @1
else:
    @1

try:
    @1-2
    if $c: raise $x
except $k as error:
    raise RuntimeError('again') from error

try:
    @1
    if $c: raise $x
except (KeyError, Odd):
    @1
except Exception as error:
    log.append(repr(error))
    @1

try:
    @1-2
finally:
    log.append('finally')
    @1

try:
    if $c: raise $x
    @1
except $k:
    @1
else:
    @1
finally:
    log.append('end')
    @1

try:
    if $c: return $t
    @1
finally:
    log.append('left')

for $+N in range(3):
    try:
        if $c: continue
        if $c: break
        @1-2
    finally:
        log.append($N)

try:
    try:
        raise $x
    finally:
        @1
except Exception as error:
    log.append(type(error).__name__)

try:
    try:
        raise $x
    except $k:
        raise
except Exception as error:
    log.append(type(error.__context__).__name__)

with torch.no_grad():
    @1-2

with $B as $+B:
    @1-2

with noted($w) as held:
    log.append(held)
    @1-2

with noted('a'), $B as $+B:
    @1-2

with Quiet(KeyError, ZeroDivisionError):
    @1-2
    if $c: raise $x

with contextlib.suppress($k):
    @1
    raise $x

with contextlib.ExitStack() as stack:
    stack.enter_context(noted('s'))
    @1

$s = $n
def $f(a, extra=$n):
    nonlocal $s
    $s += extra
    %1-2
    return a + $s
$+T = $f($t) + $f($t, 2)
log.append($s)

def $f(*args, k=$n, **named):
    %1
    return sum(args) + k + len(named)
$+T = $f($t, $n, z=1) + $f($t, k=2)

def $f(v):
    if v < 1: return $n
    return $f(v - 1) + v
$+N = $f($3)

def $f(v, seen=[]):
    seen.append(v)
    return len(seen)
$+N = $f($n) + $f(1)

def $f():
    yield $n
    %1
    got = yield $n
    log.append(got)
    yield from ($n, 2)
$a = $f()
$+L = [next($a), next($a)]
log.append(list($a))

def $f(v):
    def inner(w=$n):
        return v * w + $n
    return inner
$+T = $f($t)() + $f($t)(2)

@twice
def $f(v, by=$n):
    %1
    return v + by
$+T = $f($t) - $f($t, by=1)

match ($n, [$n, 2]):
    case ($3, _):
        @1
    case (first, [second, *rest]) if first > second:
        @1
    case _:
        @1

match $P:
    case Point(a=0 | 1):
        @1
    case Point(a=first, b=2):
        log.append(first)
    case _:
        @1

match {'k': $n, 'z': 1}:
    case {'k': 1 | 2 as got}:
        log.append(got)
    case {'k': got, **rest}:
        log.append((got, len(rest)))
"""
RAISED = (
    "ValueError('v', 1)", "KeyError(3)", "IndexError", "StopIteration(2)", "Odd($n)",
    "ZeroDivisionError('z')", "TypeError(f'{$N}')", "Odd",
)  # fmt: skip
CAUGHT = (
    "ValueError", "(KeyError, IndexError)", "Exception", "ArithmeticError", "LookupError", "Odd",
)  # fmt: skip
BREAK = "torch._dynamo.graph_break()"
KINDS = "NTLDEBPW"


def _choices(text: str) -> list[str]:
    return [part for line in text.strip().split("\n") for part in line.split("  ")]


def _statements(text: str) -> list[str]:
    return [line.replace(r"\n", "\n") for line in text.strip().split("\n")]


class Maker:
    """Writes one function."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        # Where statements begin: the number of the line and its depth.
        self.starts: list[tuple[int, int]] = []
        self.counter = 0
        self.names = {"N": ["n", "k"], "T": ["x", "y"], "L": ["items"], "D": ["table"],
                      "E": ["some"], "B": ["box"], "P": ["point"], "W": ["word"]}  # fmt: skip
        self.in_function = 0
        self.depth = 0

    # ---- expressions

    def expression(self, kind: str) -> str:
        """A random expression of a kind."""
        rng = self.rng
        self.depth += 1
        try:
            if self.depth > 2 or rng.random() < 0.3:
                if kind == "n":
                    return rng.choice([str(rng.randint(-3, 6)), rng.choice(self.names["N"])])
                if kind == "t":
                    return rng.choice(self.names["T"])
                if kind == "w":
                    return rng.choice([rng.choice(self.names["W"]), "'ab'", "'cab'"])
            table = {"n": _NUMBERS, "t": _TENSORS, "c": _TESTS, "w": _TEXTS}[kind]
            return self.filled(rng.choice(table), {}, [])
        finally:
            self.depth -= 1

    def filled(self, template: str, own: dict[str, str], made: list[tuple[str, str]]) -> str:
        """The template with every mark replaced; `made` gets the new variables."""
        before = list(made)

        def mark(match: re.Match) -> str:
            new, name = match.groups()
            if new:
                return self.new_name(name, made)
            if name.isdigit():
                return str(self.rng.randint(0, int(name)))
            if name in KINDS:
                fresh = [n for kind, n in before if kind == name]
                return fresh[-1] if fresh else self.rng.choice(self.names[name])
            if name in "ntcw":
                return self.expression(name)
            if name == "x":
                return self.filled(self.rng.choice(RAISED), own, made)
            if name == "k":
                return self.rng.choice(CAUGHT)
            if name not in own:
                self.counter += 1
                own[name] = f"{name}_{self.counter}"
            return own[name]

        return re.sub(r"\$(\+?)(\w)", mark, template)

    def new_name(self, kind: str, made: list[tuple[str, str]]) -> str:
        self.counter += 1
        name = f"{kind.lower()}{self.counter}"
        made.append((kind, name))
        return name

    # ---- statements

    def statement(self, depth: int) -> None:
        """One statement, with the blocks inside."""
        rng = self.rng
        self.starts.append((len(self.lines), depth))
        if depth < 4 and rng.random() < 0.42:
            template = rng.choice(_NESTED)
        elif not self.in_function and rng.random() < 0.15:
            template = rng.choice(_REBINDING)
        else:
            template = rng.choice(_SIMPLE)
        self.write(template, depth)

    def write(self, template: str, depth: int) -> None:
        """Writes a template. Names that the head of a block introduces are known in it alone."""
        own: dict[str, str] = {}
        made: list[tuple[str, str]] = []
        for line in template.split("\n"):
            block = re.fullmatch(r"( *)([@%])(\d)(?:-(\d))?", line)
            if block is None:
                parts = [self.filled(part, own, made) for part in line.split("; ")]
                self.emit(depth, "; ".join(parts))
                continue
            space, kind, low, high = block.groups()
            self.in_function += kind == "%"
            count = self.rng.randint(int(low), int(high or low))
            self.block(depth + len(space) // 4, count, made)
            self.in_function -= kind == "%"
        if not template.startswith(("for ", "with ", "if ", "try", "match ")):
            for kind, name in made:
                self.names[kind].append(name)

    def block(self, depth: int, count: int, made: list[tuple[str, str]]) -> None:
        saved = {kind: list(names) for kind, names in self.names.items()}
        for kind, name in made:
            self.names[kind].append(name)
        for _ in range(count):
            self.statement(depth)
        self.names = saved

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def write_function(self) -> None:
        """Writes the statements of the function."""
        for _ in range(self.rng.randint(3, 7)):
            self.statement(1)

    def source(self, breaks: float = 0.0) -> str:
        """The text of the module, with the function `f`. `breaks` is the share of statements
        that come after a graph break."""
        lines = list(self.lines)
        for place, depth in reversed(self.starts):
            if breaks and self.rng.random() <= breaks:
                lines.insert(place, "    " * depth + BREAK)
        body = "\n".join(lines)
        names = ", ".join(self.names["T"] + self.names["N"] + self.names["W"])
        start = "def f(x, y, n, items, table, box, some, point, word, k=3):\n"
        return f"{PRELUDE}{start}{body}\n    return [{names}], items, table, box, some, point\n"


_NUMBERS, _TENSORS, _TESTS = _choices(NUMBERS), _choices(TENSORS), _choices(TESTS)
_TEXTS = _choices(TEXTS)
_SIMPLE, _REBINDING = _statements(SIMPLE), _statements(REBINDING)
_NESTED = NESTED.strip().split("\n\n")
