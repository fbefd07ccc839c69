"""Templates of random Python functions. A template is one statement; in it

    $n $t $c $w         an expression: number, tensor, condition, text
    $N $T $L $D $E $B   the name of a variable: int, tensor, list, dict, set, Box
    $P $W $V $Q $C      the name of a variable: Point, text, Vec, deque, Both
    $+N ... $+W         a new variable of that kind
    $f $g $a ...        a new name of no kind, the same in the whole template
    $x $k               an exception to raise, a class of exceptions
    $0 ... $9           a number from 0 to that one

and a line `@1-3` stands for a block of one to three statements, `%1` for one of a nested function.
Expressions are parted by two spaces, statements by lines and compound statements by empty lines.
Rare things stand in lists of their own, so that a function has some of each.
"""

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
abs($V)  len($V)  $V[$1]  ($V @ $V)  sum($V)  operator.index($V)  [5, 6, 7, 8][$V]
next(iter($V), $n)  sum(reversed($V))  hash($V) * 0 + $n  {Vec(1): $n}.get($V, 4)
$C.left  $C.size  $C.heavy  $C.cached  $C.ghost  $C.power($n)  len($C.who())  $C.made  Both.made
len($Q)  $Q[0]  $Q.count($n)  sum($Q)  max($Q, default=$n)  remember($n)  outer_error($2)
inner_error($n)  sum(tree($4))  sum(Walk($3))  len(Filled({1: 2}))  Filled()[$n]
len(Stack([1, $n]))  maker($n)[0]()($n)  (lambda v: (lambda: v * $n)())($n)
sum(v for row in [[i, j] for i in range(2) for j in range(i + 1)] for v in row)
len([[k for k in range(j)] for j in range($3) if j])  sum({i: i * $n for i in range(3)}.values())
(lambda a, /, b, *, c=$n: a + b * c)(1, $n)  helper(*(1, 2, $n), **{'scale': 2, 'q': 1})
max(enumerate([$n, $n]), key=lambda p: p[1])[0]  Rank($n).kind  Deep($n, c={1: 2}).sum
sum(x[0] for x in itertools.groupby([1, 1, $n]))  len(list(itertools.chain([1], $Q, ($n,))))
int(Rank($n) >= Rank($n))  len(dict(Pair($n, 2)._asdict()))  registry.setdefault($2, $n)
"""
TENSORS = """
($t + $t)  ($t * $n)  ($t - $t)  torch.sin($t)  $t.abs()  (-$t)  torch.max($t, $t)
$t.clamp(-2, 2)  helper($t, $3)  helper($t, 2, 5, *[1, 2], scale=$n, q=3)  $B.value  $B.double
Box.plus($t, $t)  torch.stack([$t, $t]).sum(0)  sum([$t, $t])  Big.make($t).bump().value
torch.where($t > 0, $t, $t)  counted($t, by=$n)  (lambda v: v + $n)($t)  [$t, $t][$1]
($t if $c else $t)  (Box($t) + $t).value  functools.reduce(operator.add, [$t, $t])
Pair($t, $n).left  {'k': $t}['k']  torch.cat([$t[:1], $t[1:]])  next(v for v in [$t, $t])
max([$t, $t], key=lambda v: $n)  torch.full_like($t, $n)
$t.clone().mul_($n)  $t[[2, 0, 1]]  $t.view(3)  $t.detach()  torch.cat([$t, $t])[1:4]
functools.partial(torch.add, $t)($t)  $t.sum() * $t  [v for v in $t.unbind()][0] * $t
"""
TESTS = """
$n < $n  $n == $n  $n != $n  $n >= $n  $n in $D  $n not in $E  $n < $n < 5  not $n  ($n and $n)
($n or $n)  isinstance($B, Big)  isinstance($n, (str, int))  $L  $D  $E  $B  hasattr($B, 'extra')
hasattr($P, 'zz')  $B == $B  $B is $B  $B is not None  $B < $B  $P == $P  $P is $P
Fixed($n) < Fixed($n)  Pair(1, $n) == (1, 2)  $n in $B  any(i == $n for i in range(3))
all($n for _ in range(2))  $W == $W  'a' in $W  $W.startswith('b')  callable($B)
Color.RED is Color(1)  {1, $n} <= {1, 2, 3}  [$n, 1] < [$n, 2]  issubclass(type($B), Box)
$V == $V  $V < $V  $V  $C  Rank($n) < Rank($n)  $n in $V  $n in $Q  isinstance($C, Left)
hasattr($C, 'ghost')  hasattr($C, 'locked')  $P == Deep(1)  $L == $L  $D == $D  $x is not None
($n, $n) in {(1, 2): 3}  $x.args  $L is $L  Vec($n) in [$V]  {1: $n} == {1: $n}
"""
TEXTS = """
str($n)  f'{$N}'  f'{$N:>4}|{$N!r:<3}|{$W}'  f'{$B!r}'  f'{$N:0{$3}d}'  '%d-%s' % ($n, $w)
'{}:{a}'.format($n, a=$w)  $w.upper()  ($w + $w)  $w[::-1]  '-'.join([$w, $w])
$w.replace('a', 'bb')  repr($n)  repr([$n, $w])  type($B).__name__  ($w * $2)  str($c)
','.join(sorted($w))  $w.strip('b').center(5, '*')  $w.partition('a')[0]  str(($n, $w))
f'{$V}'  f'{$V:>3}'  shown($n)  shown($w)  shown(None)  ' '.join($C.who())  repr($P)
repr(Fixed($n))  repr(Pair($n, $n))  type($C).__mro__[1].__name__  repr($Q)  str($x)  repr($x)
$w.join(map(str, $Q))  f'{$N=}'  '|'.join(f'{k}{v}' for k, v in sorted({'a': $n, 'b': 1}.items()))
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
$+V = Vec($n, $n)
$+V = $V + $V
$+V = $V * $n
$+V = $n - $V
$+V = ~$V
$+V = $V[$1:]
$+V = $V
$V[$1] = $n
del $V[$1]
$V.v.append($n)
$V.note = $n; log.append($V.note)
log.append(Vec(1) + 'a')
$a = {Vec(1, 2): $n}; log.append($a.get(Vec(1, 2)))
log.append(sorted([Vec($n), Vec($n, 1)])[0].v)
$+Q = collections.deque([$n, $n], maxlen=$4)
$+Q = collections.deque($L)
$+Q = $Q
$Q.append($n)
$Q.appendleft($n)
$Q.popleft()
$Q.pop()
$Q.rotate($2)
$Q.extend([$n, $n])
$Q.extendleft(range($2))
$Q[0] = $n
$Q.clear()
$Q.insert($1, $n)
$+C = Both($n, right=$2)
$+C = Both(left=$n, nobody=1)
$+C = $C
$C.left = $n
$C.size = $n
$C.size += $n
del $C.size
$C.locked = $n
log.append($C.heavy + $C.heavy)
log.append($C.cached)
del $C.cached
del $C.heavy
$C.named.append($n)
log.append($C.who())
Both.made = $n
Box.shared += $n
log.append(($C.made, Both.made, Base.made))
$a = Slimmer($n); $a.b = $n; del $a.b; log.append($a.c + $a.b)
$a = Slimmer($n, $n)\ndel $a.c\nlog.append(hasattr($a, 'c'))
$a = Filled({1: $n}); log.append($a[$2]); $a[3] = $n; log.append(dict($a))
$a = Stack().push($n, *range($2)); log.append((len($a), list($a)))
$a = Rank($n); $a.tags.add($n); log.append(($a > Rank(), max($a, Rank(2)).level))
$+P = Deep($n, $n, c={$n: 1})
$P.rest = $L
$P.rest, $P.a = [], $n
log.append(dataclasses.asdict($P))
$P.zz += 1
$a = collections.defaultdict(list); $a[$n].append($n); $a[1].append(2); log.append($a)
$a = collections.defaultdict(lambda: $n); log.append($a[$n] + $a[1]); log.append(len($a))
$a = collections.ChainMap({1: $n}, $D); log.append($a[1])
$a = collections.Counter($w); $a.update('ab'); log.append($a.most_common(1))
$L.sort(key=str)
$L.sort(key=lambda v: -v if isinstance(v, int) else 0, reverse=True)
$L[:] = [$n]
$L[::2] = [$n, $n]
$L.append($L[:1])
$+L = [$L, $L]; $L[0].append($n)
del $L[:1]
$+L = $L.copy(); $L.append($n)
$+D = $D; $D[8] = $n
$D[$w] = $t
for $a in list($D): $D.pop($a)
$D[$n], $D[5] = $n, $D.get(1)
$E.symmetric_difference_update({$n, 2})
$E.intersection_update({1, 2, $n})
$+E = frozenset($E) | {$n}
$T.add_($n)
$T.mul_($t)
$T[0] = $n
$T[1:] = $t[1:]
$T[:] = $t
$a = $T[:2]; $a.mul_(2)
$a = $T.view(3); $a[0] = $n; log.append($a is $T)
$+T = $T
$a = $n; del $a; log.append($a)
$a = $n; $b = lambda: $a; log.append($b()); del $a; log.append($b())
$b = lambda: $a; log.append($b()); $a = $n
log.append($a); $b = lambda: $a; $a = 1
$a = relay($n)\nlog.append(next($a)); log.append($a.send($n)); log.append($a.send(None))
$a = relay($n)\nnext($a)\nlog.append($a.throw(ValueError, 'x'))\nlog.append(list($a))
$a = relay($n)\nnext($a); $a.close(); log.append(next($a, 'none'))
$a = relay($n)\nlog.append(next($a)); log.append($a.throw(KeyError(1)))
$a = averager()\nnext($a)\n$a.send($n)\nlog.append($a.throw(Odd, Odd(1)))
$a = raising($3)\nlog.append(next($a, 0)); log.append(list($a))
$a = tree($3)\nlog.append(next($a, 0)); log.append(sum($a))
$a = careful($3)\nlog.append(next($a))
$a = careful($3)\nlog.append(next($a)); $a = None
$a, $b = maker($n)\n$d = $a()\nlog.append($d($n)); log.append($d(1)); $a(); log.append($b())
$a = [maker(i)[0]() for i in range(2)]; log.append([g($n) for g in $a])
$a = {k: (lambda: k) for k in range(3)}; log.append($a[0]())
log.append([(lambda v: [v, i])(j) for i in range(2) for j in range(i, 2)])
log.append({i: {j for j in range(i) if j != $n} for i in range($3)})
log.append([*map(lambda v, w: v * w, $Q, [1, $n])])
log.append(dict(**{'a': $n}, b=2)); log.append([*$E][:0] + [*$w])
$a, *$b, $d = [*range(4), $n]; log.append((len($b), $d))
[$a, ($b, *$d)] = $n, [1, 2]; log.append(($b, $d))
$a = $b = [$n]; $a.append(1); log.append($b)
registry[$w] = $n
registry.update(a=$n); log.append(sorted(registry, key=str))
helper.calls = $n; log.append(helper.calls)
helper.seen = getattr(helper, 'seen', 0) + 1
log.append(remember($n, known={$n: 3}))
raise $x
log.append(outer_error(0))
log.append(inner_error($n))
log.append(($x, $x.args))
$a = Odd($n); $a.extra = $n; log.append($a.extra)
$a = Odd($n)\n$a.__cause__ = KeyError(2)\nraise $a
assert not $c
$a = $n\nwhile $a > 0: $a -= 3
$a = iter([1, 2, $n]); log.append([v for v in zip($a, $a)])
$a = zip([1, 2], $L); log.append(next($a, None)); log.append(len(list($a)))
$a = map(helper, [1, $n]); log.append(next($a)); log.append(list($a))
$a = itertools.count($n); log.append([next($a), next($a)])
$a = itertools.cycle([1, $n]); log.append([next($a) for _ in range(3)])
$a = enumerate($Q); log.append(next($a, 7)); log.append(list($a))
$a = (v for v in $L if v is not None); next($a, None); log.append(len(list($a)))
log.append(Color.RED.name + Color['BLUE'].name); log.append(Color($n))
log.append($x.__class__.__name__ + type($V).__name__)
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
$V += $n
$V -= 1
$P = $P.moved(1)
$Q += [$n]
$E ^= {$n}
$D = {**$D}
$L = sorted($L, key=str)
$T *= $n
$L *= 2
$E -= {$n}
$T += $t
del $N
del $T
del $L
del $W
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

try:
    @1
    raise $x
except $k as error:
    @1
    raise $x

try:
    @1
    raise $x from $x
except $k as error:
    log.append((type(error.__cause__).__name__, type(error.__context__).__name__))

try:
    try:
        @1
        raise $x
    except $k as error:
        $a = error
        raise Odd($n) from None
except Odd as error:
    log.append((type(error.__context__).__name__, error.__suppress_context__, error.number))

try:
    raise $x
except Exception as error:
    $a = error
try:
    raise Odd(2)
except Odd as error:
    try:
        raise $a
    except Exception as error:
        log.append((type(error.__context__).__name__, error is $a))
        @1

try:
    @1
    log.append(outer_error(0))
except Odd as error:
    log.append((type(error.__cause__).__name__, type(error.__context__).__name__))
    @1

try:
    @1
    log.append(inner_error($n))
except IndexError as error:
    log.append(type(error.__context__).__name__)

for $+N in range(3):
    try:
        if $c: raise $x
        @1
    except $k:
        @1
        continue
    else:
        if $c: break
    finally:
        @1

for $+N in range(2):
    try:
        @1
        raise $x
    except $k:
        @1
        break
    finally:
        if $c: continue

try:
    @1
    return $n
finally:
    if $c: return $t
    @1

while $c:
    try:
        @1
        break
    finally:
        log.append('once')
        @1
    break

try:
    @1
finally:
    try:
        raise $x
    except $k:
        @1

try:
    pass
except $k:
    @1
else:
    try:
        @1
        raise $x
    except $k as error:
        del error
    @1

with Swallow() as $s:
    @1-2
    raise $x

with Swallow():
    @1
    if $c: return $n

for $+N in range(3):
    with Swallow():
        if $c: continue
        if $c: raise $x
        @1
    if $c: break

with Turn() as $+N:
    @1
    if $c: raise $x

try:
    with Turn() as $+N:
        @1
        raise $x
except Odd as error:
    log.append(type(error.__context__).__name__)

with guarded($k) as $+N:
    @1
    if $c: raise $x

with guarded(Exception), noted('b') as $s:
    @1
    raise $x

with contextlib.ExitStack() as stack:
    stack.enter_context(Swallow())
    stack.callback(log.append, $n)
    @1
    if $c: raise $x

with contextlib.nullcontext($n) as $+N:
    @1-2

with torch.no_grad(), noted('g'):
    @1
    if $c: raise $x

with torch.enable_grad():
    $a = ($t).clone().requires_grad_()
    @1
    $+T = ($a * $n).sum() * $t.detach()

class $f(Box):
    kind = $n
    def bump(self, by=$n):
        return super().bump(by + 1)
    @property
    def twice(self):
        return self.extra * 2
$+B = $f($t, $n).bump()
log.append(($B.twice, $B.kind))

def $f(v):
    total = v
    def add(w):
        nonlocal total
        total += w
        def again():
            nonlocal total
            total *= 2
            return total
        return again
    return add, lambda: total
$a, $b = $f($n)
$d = $a($n)
@1
log.append(($d(), $b()))

def $f(n):
    mine = finals
    try:
        for i in range(n):
            got = yield i
            if got == 'stop':
                return $n
    except Odd as error:
        yield error.number
    except GeneratorExit:
        mine.append('gone')
        raise
    else:
        log.append('done')
def $g(n):
    result = yield from $f(n)
    log.append(result)
    yield $n
$a = $g(3)
log.append(next($a))
@1
log.append($a.send('stop'))
log.append(list($a))

def $f(n):
    yield from range(n)
    return $n
$a = $f($3)
for $+N in $a:
    @1
    if $c: break
log.append(list($a))

for $+N in careful(3):
    @1
    if $c: break

for $+N in raising($3):
    @1

def $f(n):
    if n == 0:
        raise $x
    try:
        $f(n - 1)
    finally:
        log.append(n)
try:
    $f($3)
except $k:
    @1

def $f(n, acc=()):
    %1
    return acc if n <= 0 else $f(n - 1, (*acc, n))
log.append($f($3))

def $f(a, /, b, *rest, c=$n, **named):
    return (a, b, rest, c, sorted(named.items()))
log.append($f(*[$n, 2, 3], **{'c': 1, 'z': $n}))
log.append($f($n, b=2))
log.append($f($n))

def $f(a, seen=[]):
    seen.append(a)
    return seen
$+L = $f($n)
@1
$f(2)
log.append($L)

def $f(v=$n):
    global total
    total += v
    registry['f'] = total
    %1
    return total
$+N = $f() + $f($n)

$a = total
total = $a + $n
@1
log.append(total)

def $f():
    %1
    return $t
$+T = $f()
@1
$+T = $f() + $f()

def $f(fn):
    @functools.wraps(fn)
    def run(*args):
        log.append(fn.__name__)
        return fn(*args)
    return run
@$f
def $g(v):
    %1
    return v + $n
log.append($g($n))

match $n:
    case 0 | 1:
        @1
    case int(found) if found > 2:
        log.append(found)
    case found:
        @1

match $L:
    case []:
        @1
    case [one]:
        log.append(1)
    case [int(one), *rest] if len(rest) > 1:
        @1
    case [*_, last]:
        @1

match $w:
    case 'ab' | 'a':
        @1
    case str() as text:
        log.append(text)

match Fixed($n, $n):
    case Fixed(0, b):
        log.append(b)
    case Fixed(a=1 | 2 as got, b=_):
        log.append(got)
    case Fixed(a, b):
        @1

match Color($2):
    case Color.RED:
        @1
    case Color.BLUE:
        log.append('blue')

match {'a': [$n, {'b': $n}]}:
    case {'a': [1, _]}:
        @1
    case {'a': [first, {'b': second}], **rest}:
        log.append((first, second, rest))

for $a in [0, 1]:
    for $b in [2, $n]:
        if $b == $n: continue
        @1
        if $c: break
    else:
        log.append('whole')
        continue
    @1

if ($a := $n) > 2:
    @1
    log.append($a)

$a = $n if $c else None
if $a is None:
    @1
else:
    log.append($a)
"""
RAISED = (
    "ValueError('v', 1)", "KeyError(3)", "IndexError", "StopIteration(2)", "Odd($n)",
    "ZeroDivisionError('z')", "TypeError(f'{$N}')", "Odd", "AttributeError('a')",
    "RuntimeError", "AssertionError($n)",
)  # fmt: skip
CAUGHT = (
    "ValueError", "(KeyError, IndexError)", "Exception", "ArithmeticError", "LookupError", "Odd",
)  # fmt: skip
