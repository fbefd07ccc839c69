"""More templates of random Python functions, by the part of the language they use: protocols of
classes, iterators and containers that change while they are walked, groups of exceptions, patterns,
texts, coroutines. The marks are those of function_templates.py; a line of statements that begins
with spaces goes on with the one before."""

NUMBERS = """
len(Ring($n, 2))  Ring($n, 3)[$1]  sum(Ring(1, $n))  Ring(1, 2).index($n)  Ring(1, $n).count(1)
Bag(a=$n)['a']  len(Bag(a=1, b=$n))  Bag(a=$n).pop('a')  Bag(a=1).get('b', $n)  New($n % 3).n
sum(Bag(a=$n, b=2).values())  Made($n).v  Made[$n]  Made.label  len(Made)  (Num($n) + 1)
(Num($n) * 2)  (3 - Num($n))  int(Num($n))  Row((1, $n)).total()  len(Row((1, 2)) + ($n,))
(Level.LOW + $n)  Level(2).value  int(Perm.R | Perm.W)  int(Perm(3) & Perm.W)  Level['TOP'] * 2
math.floor($n / 2)  math.gcd($n, 6)  math.isqrt(abs($n))  math.prod([$n, 2])  math.ceil($n / 3)
$N.bit_length()  bisect.bisect([1, 3, 5], $n)  heapq.nsmallest(2, [$n, $n, 1])[0]
sum(a * b for a, b in itertools.pairwise([1, $n, 3]))  len(list(itertools.combinations($Q, 2)))
sum(itertools.starmap(pow, [(2, 3), ($2, 2)]))  sum(itertools.takewhile(lambda v: v < 3, $Q))
len(list(itertools.dropwhile(lambda v: v < $n, range(5))))  sum(itertools.compress([1, 2], [$n, 1]))
sum(itertools.chain.from_iterable([[1], [$n]]))  len(list(itertools.zip_longest([1], [2, $n])))
sum(itertools.repeat($n, 2))  list(itertools.accumulate([1, $n], max, initial=2))[-1]
sum(a for a in itertools.filterfalse(lambda v: v % 2, range(5)))
operator.itemgetter(0)([$n])  operator.attrgetter('a')($P)  operator.methodcaller('moved', $n)($P).a
sum(operator.itemgetter(1, 0)([$n, 2]))  squared($n)  squared(2)
sorted([$n, 3, $n], key=functools.cmp_to_key(lambda a, b: b - a))[0]
sum(a - b for a, b in zip([1, 2], [$n, 2], strict=True))
len(list(zip([1], range($3), strict=True)))
sum([[1], [$n]], [])[0]  (max($w, default='z') < 'b')
min((v, i) for i, v in enumerate([$n, $n]))[1]  len(range($n))  range(5)[::-1][$3]
range(4).index($n)  slice(1, None).indices(5)[1]  len(bytes([$n % 9]))  len(b'ab' * $2)
int('0x1f', 16)  float($n)  len(str($n / 4))  [n for n in [$n]][0]
sum(x for x in [$n, 1])
next((i for i, v in enumerate($L) if v is None), $n)  sum(1 for _ in iter(lambda: $Q.popleft(), $n))
($n or $n if $c else $n)  ($n, *$Q)[-1]  [*$D, *$E, $n][-1]  {**$D, 1: $n}[1]
({$n: 1} | {1: $n} and $n)  len({*$E, $n})  len($D.keys() & {1, 3})  len($D.items() | {(1, 2)})
sum(reversed($D))  $D.__len__()  len($D.values())  hash((1, $n)) * 0  hash($w) * 0  $Q.index($n)
len($Q + $Q)  list.__len__($L)  len(dict($D.items()))  int.__add__(1, $n)
type($n)(3)  (lambda: (yield))().__class__.__name__.count('g')  len(inspect_args(1, b=$n))
Linked($n, Linked(2)).total()  len(list(Linked(1, Linked($n))))  Old($3)[1]  sum(Old($3))
Hidden($n).hidden  Hidden($n).v  Part($n).half()  Part.third(Part($n))  Plain.bound($n)
Wide(a=$n, b=2).c  Slotted($n).x  abs(complex($n, 0)) * 1  frozen_sum((1, $n))
"""
TENSORS = """
torch.stack([v * $n for v in ($t, $t)])[0]  sum((v for v in [$t, $t]), $t)  Linked($t).value
($t * 2)[:]  operator.mul($t, $n)  {**{'a': $t}}['a']  [*($t, $t)][-1]
functools.reduce(lambda a, b: a + b, [$t, $t, $t])  max((1, $t), (2, $t), key=lambda p: p[0])[1]
operator.itemgetter(1)([$t, $t])  Wide(a=$t).a  next(iter([$t]))  dict(a=$t).popitem()[1]
"""
TESTS = """
$n in Ring(1, 2)  'a' in Bag(a=1)  Ring(1) == Ring($n)  Num($n) == $n  isinstance(New($n), New)
Level.LOW < Level($n)  Perm.R in Perm($3)  bool(Perm(0))  $n in range(1, 5)  $w.isdigit()
$w < $w  $w in ('ab', $w)  {$n} < {1, $n, 2}  $E.isdisjoint({$n})  frozenset([1]) == {$n}
$D.keys() == {1, 3}  $D.items() >= {(1, 2)}  $n is $n  $n != 1 != 2  not ($c and $c)  ($c or $c)
any(v is None for v in $L)  all(isinstance(v, int) for v in $Q)  $Q == $Q  $Q < $Q  [] or $L
isinstance(Made(1), (Meta, Made))  isinstance(Ring(1), collections.abc.Sequence)
issubclass(bool, int)  isinstance($n, numbers_abc.Integral)  hasattr(Slotted(1), 'y')
Slotted(1) == Slotted($n)  Wide(a=1) < Wide(a=$n)  type($L) is list  $n .__class__ is int
callable(getattr($P, 'moved', None))  (lambda: $c)()  bool($Q)  bool(Hidden(0))
Pair(1, 2) > (1, $n)
"""
TEXTS = """
f'{$N:+d}'  f'{$N:x}'  f'{$N / 3:.2f}'  f'{$N:,}'  f'{$W!r:>8}'  f'{$W:^{$5}}'  f'{$N:05.1f}'
f'{$W}{f"{$N}"}'  '%(a)s-%(b)03d' % {'a': $w, 'b': $n}  '%5.1f|%-4s|%r' % ($n, $w, $w)
'{0[0]}{0[1]}'.format([$n, $w])  '{a.a:>4}'.format(a=$P)  '{:{}}'.format($n, 4)  $w.title()
$w.zfill(5)  ' '.join($w.split('a'))  $w.translate(str.maketrans('ab', 'xy'))  $w.encode().hex()
'{x}'.format_map({'x': $n})  $w.removeprefix('a')  $w.swapcase()  $w.ljust(4, '.')  repr(Ring($n))
repr(Bag(a=$n))  repr(Num($n))  str(Level.LOW)  repr(Perm(3))  repr(Wide(a=$n))  repr(Slotted($n))
format($n, '>3')  ascii('\\u00e9' + $w)  repr($w + "'")  str([$w, ($n,), {$n: $w}, {1}])  repr(())
repr(range($3))  repr(slice($n, None))  str($D.keys())  repr($D.items())  str(frozenset([$n]))
repr(collections.OrderedDict(a=$n))  repr(collections.Counter('aab'))  repr(dict(a=[$n]))
repr(collections.defaultdict(int, {1: $n}))  type($x).__mro__[1].__name__  Hidden.__name__ + $w
chr(97 + $3)  $w[$1:$3]  $w[-1]  $w[$5]  ''.join(reversed($w))  ''.join(c for c in $w if c > 'a')
' '.join(f'{k}={v}' for k, v in Wide(a=$n).__dict__.items())  str(ExceptionGroup('g', [$x]))
helper.__name__ + helper.__qualname__  (lambda: 0).__name__  str(Nested.Inner($n))  repr(None)
"""
SIMPLE = r"""
for $a in $D: $D[$a] = $n
for $a in $D: $D[99] = $n
for $a in $E: $E.add(50)
for $a in $E: $E.discard($a)
for $a in $L: log.append($L.pop())
for $a, $b in $D.items(): log.append(($a, $b))
for $a in reversed($L): log.append($a is None)
for $a in $D.values(): $D.clear()
for $a in $Q: $Q.append($a)
$a = iter($D); $D[77] = 1; log.append(next($a))
$a = iter($D.items()); log.append(next($a, 0)); $D.pop(1, 0); log.append(list($a))
$a = iter($E); $E.add($n); log.append(next($a, 3))
$a = iter($L); $L.append($n); log.append(len(list($a))); log.append(next($a, 5))
$a = reversed($L); $L.append($n); log.append(len(list($a)))
$a = iter($Q); next($a, 0); $Q.append(1); next($a, 0)
$a = zip($L, $D); log.append(next($a, 0)); $D.clear(); log.append(next($a, 1))
$a = map(lambda v: $D.pop(v, 0), [1, 3]); $D[3] = $n; log.append(list($a))
$a = (i for i in $D); $D[55] = 1; next($a)
$a = $D.keys(); $D[66] = $n; log.append(len($a)); log.append(66 in $a)
$a = $D.items(); $D.clear(); log.append(list($a))
$a = ([$n],); log.append(len($a[0])); $a[0] += [2]
$a = ([1], 2); $a[1] += 1
$L[0] += 1
$L[-1:] += [$n]
$P.rest += [$n]
$P.rest[-1] += 1
$P.a += $n; $P.b *= 2; $P.a //= 2
$D[1] **= 2
$D[3] <<= 1; $D[3] |= 8; $D[3] ^= $n
$a = {1: [1]}; $a[1] += [$n]; $a[1] *= 2; log.append($a)
$a = [[0] * 2] * 2; $a[0][1] += $n; log.append($a)
$a = 'a'; $a += $w; $a *= 2; log.append($a)
$a = ($n,); $a += (1,); $a *= 2; log.append($a)
$a = {1}; $b = $a; $a |= {$n}; $a &= {1, $n}; log.append(($a, $a is $b))
$a = [1]; $b = $a; $a += (2,); $a = $a + [3]; log.append(($a, $b))
$a = collections.deque([1]); $a += [$n]; $a *= 2; log.append($a)
$a = collections.Counter('ab'); $a += collections.Counter('a'); $a -= collections.Counter('b');
    log.append($a)
$a = Num($n); $a += 1; log.append(type($a).__name__); log.append($a)
$a = Perm.R; $a |= Perm.W; log.append($a)
$a = Bag(a=1); $a['b'] = $n; $a.update(c=2); $a.setdefault('d', 1); del $a['a'];
    log.append(dict($a))
$a = Bag(); log.append($a.popitem())
$a = Bag(a=$n); log.append($a['zz'])
$a = Ring(1, 2, $n); log.append(list(reversed($a))); log.append($n in $a); log.append($a[5])
$a = New(-$2); log.append($a)
$a = New($n); log.append(getattr($a, 'n', None))
$a = Made($n); log.append($a.v); log.append(type($a).label)
class $f(Registered): pass\nlog.append($f.__mro__[1].__name__)
$a = Hidden($n); $a.v = 3; log.append($a.v); log.append($a.nothing)
$a = Slotted($n); $a.y = 1; log.append(($a.x, $a.y)); $a.z = 2
$a = Slotted($n); del $a.x; log.append($a.x)
$a = Wide(a=$n, b=1); log.append(dataclasses.asdict($a)); log.append($a == Wide(a=1, b=1))
$a = Wide($n)
$a = Icy($n); $a.v = 2
$a = Icy($n); log.append(hash($a) == hash(Icy($n))); log.append({$a: 1}[Icy($n)])
log.append([f.name for f in dataclasses.fields($P)])
log.append(dataclasses.replace(Wide(a=1), a=$n).c)
$a = Part($n); log.append($a.half()); log.append($a.third())
$a = Watched(); $a.x = $n; log.append($a.x); del $a.x; log.append($a.x)
$a = Watched(); log.append($a.y); $a.y = $n
log.append(Watched.x.name); log.append(type(Watched.y).__name__)
$a = Linked($n, Linked(1)); log.append([v for v in $a]); log.append($a.total())
$a = Proxy($P); log.append($a.a); $a.b = $n; log.append($P.b); log.append($a.zzz)
$a = Maths($n);
    log.append((-$a, +$a, ~$a, $a ** 2, $a // 2, $a % 3, divmod($a, 2), $a << 1, 2 ** $a))
$a = Maths($n); $a -= 1; $a @= 2; log.append($a); log.append(round($a)); log.append(float($a))
log.append(Maths($n) / 0)
log.append(Maths($n) + 'x')
log.append((Maths(1) == 1, Maths(1) != 1, Maths($n) <= Maths(2), bool(Maths($n))))
log.append([Maths($n), 1, 2].index(1)); log.append(1 in [Maths(1)])
$D.update([(1, $n), (2, 3)]); $D.update(zip([5], [6]))
$D.update([(1, 2, 3)])
$D |= [(6, $n)]
log.append(list($D | {1: $n})); log.append(list(reversed($D)))
$a = dict(sorted($D.items(), key=lambda p: -p[1])); log.append(list($a))
$a = dict(a=1, b=$n); $b = $a.copy(); $b['a'] = 2; log.append(($a, $b, $a == $b))
$a = collections.OrderedDict(a=1, b=$n); $a.move_to_end('a');
    log.append($a.popitem(last=False)); log.append($a)
$a = collections.OrderedDict(b=1, a=2); log.append($a == dict(a=2, b=1));
    log.append(list(reversed($a)))
$a = collections.OrderedDict(); $a.popitem()
$a = collections.defaultdict(list); $a['k'].append($n); log.append($a.get('z'));
    log.append('z' in $a); log.append($a)
$a = collections.defaultdict(None, {1: $n}); log.append($a[1]); log.append($a[2])
$a = collections.defaultdict(lambda: collections.defaultdict(int)); $a[1][2] += $n;
    log.append($a[1][2]); log.append(len($a))
$a = collections.Counter($w); $a['q'] += 1; $a.subtract('a'); log.append(sorted($a.elements()));
    log.append($a['none'])
log.append(collections.Counter('abca') & collections.Counter($w));
    log.append(collections.Counter(a=$n).total())
$a = collections.deque(range(4), maxlen=3); $a.append($n); $a.rotate(-1); $a.remove(2);
    log.append($a)
$a = collections.deque([1, $n]); $a.reverse(); log.append($a.copy() == $a); del $a[0]; $a[3] = 1
$a = collections.deque('abc', 2); $a.extendleft($w); log.append($a.maxlen); log.append(list($a))
$a = collections.ChainMap({}, {1: $n}); $a[2] = 1; log.append($a.maps[0]);
    log.append(dict($a.new_child({1: 5})))
$a = [3, 1, $n]; $a.sort(); $b = sorted($a, key=lambda v: (v % 2, -v)); log.append(($a, $b))
$a = ['bb', 'a', $w]; $a.sort(key=len, reverse=True); log.append($a); log.append(sorted($a));
    log.append(max($a, key=len))
$a = [(1, 'b'), ($n, 'a'), (1, 'a')]; $a.sort(); log.append($a);
    $a.sort(key=operator.itemgetter(1)); log.append($a)
$a = [1, 'a', $n]; $a.sort()
$a = [$n, 2]; $a.sort(key=lambda v: $a.append(v))
$a = [Slotted(3), Slotted($n)]; log.append(sorted($a, key=lambda s: s.x)[0].x); sorted($a)
$a, $b = itertools.tee([1, $n]); log.append(next($a)); log.append((list($a), list($b)))
$a = itertools.groupby([1, 1, $n, 2], key=lambda v: v % 2);
    log.append([(k, list(g)) for k, g in $a])
$a = itertools.chain([1], numbers($3)); log.append(next($a)); log.append(list($a))
$a = itertools.islice(numbers(5), 1, None, 2); log.append(list($a))
$a = itertools.zip_longest('ab', [$n], fillvalue=0); log.append(list($a))
$a = list(itertools.permutations([1, $n, 2], 2)); log.append($a[:3])
$a = zip([1, 2], [$n], strict=True); log.append(next($a)); next($a)
$a = zip(numbers(2), numbers($3), strict=True); log.append(list($a))
$a = enumerate('ab', start=$n); log.append(list($a))
$a = filter(lambda v: v > $n, [1, 3, 5]); log.append(list($a)); log.append(next($a, None))
$a = iter(lambda: $n, 3); log.append(next($a, 'end'))
$a = map(None, [1]); next($a)
$a = functools.partial(helper, 1, scale=2); $b = functools.partial($a, 5); log.append($b());
    log.append($b.args)
log.append(functools.reduce(lambda a, b: a * 2 + b, [$n, 1], 3)); functools.reduce(max, [])
log.append(squared($n)); log.append(squared(2))
$a = operator.attrgetter('a', 'b')($P); log.append($a)
log.append([*zip(*[(1, 2), (3, $n)])]); log.append(dict(zip(*[[1, 2], [3, $n]])))
$a, ($b, *$d), *$e = 1, 'xyz', $n, 4; log.append(($b, $d, $e))
$a, $b = $b, $a = 1, $n
$a = $b = $d = [$n]; $b += [1]; log.append($d is $a)
$a, $b = [1, 2, $n]
$a, *$b = ()
$a, $b = $D; log.append($a)
$a, $b, $d, *$e = $w; log.append($e)
[$a, *$b], $d = ($n, 1), 2; log.append($b)
$a, $a = 1, $n; log.append($a)
$L[0], $L[1] = $n, $L[0]
$a = [0, 1]; $b = 0; $b, $a[$b] = 1, $n; log.append($a)
for $a in (): pass\nlog.append($a)
for $L[0] in range($2): pass
for $P.a in range($3): log.append($P.a)
log.append([($a := i) for i in range($3)]); log.append($a)
log.append({i: ($a := $n) for i in range(2)}); log.append($a)
while ($a := len($Q)) > 1: $Q.pop()
log.append((lambda *, k=1, **m: (k, m))(**{'k': $n, 'z': 1}))
log.append((lambda a, /, *b, c=2, **d: (a, b, c, d))($n, *$Q, **{'a': 1}))
(lambda a, b: a)($n)
(lambda a: a)($n, 2)
(lambda *, k: k)($n)
(lambda a: a)(b=$n)
helper(*$Q, *[1], **{'scale': 1}, **{'q': $n})
helper(1, **{'scale': 1}, **{'scale': $n})
log.append(print_args(*'ab', *$Q, x=$n, **{'y': 1}))
print_args(**{$n: 1})
raise ExceptionGroup('g', [$x, ValueError($n)])
$a = ValueError($n); $a.add_note('n'); raise $a
$a = ExceptionGroup('g', [ValueError(1), KeyError($n)]); log.append($a.subgroup(ValueError));
    log.append($a.split(KeyError))
raise $x from None
raise $n
raise Loud($n)
log.append(str(Loud($n))); log.append(repr(Loud(1))); raise Loud
$a = $x; log.append($a.__traceback__); log.append($a.__cause__)
del $P.a; log.append($P.a)
del $P.zz
$a = [1, 2, $n]; del $a[0], $a[-1]; log.append($a); del $a[::2]; log.append($a); del $a[5]
$a = {1: 2}; del $a[1]; del $a[1]
$a = $n; del $a; $a = 2; log.append($a)
del $D[1], $D[3]
total = $n\nlog.append(globals_total(1))
globals()['total'] = $n; log.append(total)
log.append(sorted(k for k in globals() if k in ('total', 'log')))
log.append(vars($P)['a']); vars($P)['fresh'] = $n; log.append($P.fresh)
$P.__dict__.update(q=$n); log.append($P.q); del $P.__dict__['q']; log.append(hasattr($P, 'q'))
$a = vars($P); $P.fresh = $n; log.append(list($a)); log.append($a is $P.__dict__);
    del $P.fresh; log.append('fresh' in $a)
$a = Plain(); $b = $a.__dict__; $a.k = $n; log.append(dict($b)); $b['m'] = 1;
    log.append($a.m); del $b['k']; log.append(hasattr($a, 'k'))
$a = Plain(); $b = iter(vars($a)); $a.k = 1; log.append(next($b))
$a = functools.partial(print_args, 1, k=$n); $a.keywords['z'] = 2; log.append($a());
    log.append($a.keywords is $a.keywords)
$a = functools.partial(print_args, $n); log.append($a == $a); $a.note = 1;
    log.append(vars($a)); log.append($a.note)
$a = lambda *, k=1: k; $b = $a.__kwdefaults__; $b['k'] = $n; log.append($a()); log.append($b)
$a = lambda: 0; $b = $a.__dict__; $a.tag = $n; log.append($b); $b['other'] = 1;
    log.append($a.other)
$a = lambda v=1: v; $b = $a.__defaults__; $a.__defaults__ = ($n,); log.append(($b, $a()))
helper.tag = $n; log.append(helper.__dict__); helper.__dict__['more'] = 1;
    log.append(helper.more); del helper.tag; del helper.more
$a = types.SimpleNamespace(k=$n); $b = vars($a); $a.z = 1; log.append($b); $b['q'] = 2;
    log.append($a.q)
$a = Odd($n); $a.mine = 1; $a.__cause__ = None; log.append(vars($a));
    log.append($a.__dict__ is vars($a))
$B.__class__ = Big; log.append(type($B).__name__)
log.append(type('Dyn', (Box,), {'shared': $n}).shared)
log.append(isinstance($n, bool) or type($c) is bool)
log.append($L.__getitem__(0) is None); log.append($D.__contains__($n))
log.append(list.append is list.append); list.append($L, $n); dict.update($D, {1: $n})
log.append(max([], default=$n)); max([])
log.append(sum([0.1] * 3)); log.append(round(2.675, 2)); log.append(-7 // 2); log.append(-7 % 3)
log.append(1 / $n); log.append($n ** -1); log.append(0 ** $n)
log.append(int('z'))
log.append(float('nan') == float('nan')); log.append([float('inf'), -0.0])
log.append(b'ab'[$2]); log.append(bytearray(b'ab')); log.append(b'%d' % $n)
log.append(memoryview(b'abc')[1])
log.append(chr($n)); log.append(ord($w))
log.append('abc'.index($w)); log.append($w.split(maxsplit=1)); log.append($w.rpartition('b'))
log.append('{}'.format()); log.append('%d' % $w)
log.append('{:d}'.format($w))
log.append(f'{$P.a:{$3}.{1}f}')
log.append(f'{$T.shape}{$L!r:.3}')
log.append(Nested.Inner($n).up()); log.append(Nested.Inner.__qualname__)
log.append(Plain.bound($n)); log.append(Plain().bound(1)); log.append(Plain.free($n))
log.append(type(Plain.bound).__name__); log.append(Plain().bound.__self__ is Plain)
$a = Plain(); $a.free = lambda: $n; log.append($a.free()); del $a.free; log.append($a.free(1))
$a = $P.moved; log.append($a($n).a); log.append($a.__self__ is $P); log.append($a == $P.moved)
$a = weakref.ref($P); log.append($a() is $P); log.append($a() is not None)
$a = contextlib.ExitStack(); $a.callback(log.append, $n); $a.close()
$a = drive(answer($n)); log.append($a)
$a = drive(fails($n)); log.append($a)
log.append(list(Lines($w))); log.append(next(iter(Lines($w)), None))
log.append(sum(x * y for x in range(3) for y in range(x) if x != $n))
log.append([[x + y for y in range(x)] for x in range(3)]);
    log.append({x: [x] * x for x in {1, 2}})
log.append([f(1) for f in [lambda v, i=i: v + i for i in range(3)]])
log.append([f() for f in [lambda: i for i in range(3)]])
log.append(list((lambda i: (i, j))(i) for i in range(2) for j in range(i)))
$a = [i for i in range($3)]; log.append([i for i in $a if i in [j for j in $a]])
log.append(next((v for v in [$n, 2] if v > 1)))
$a = (print_args(v) for v in [1, $n]); log.append(next($a)); $a.close(); log.append(list($a))
$a = numbers(3); log.append($a.gi_frame is None); list($a); log.append($a.gi_frame is None)
$a = numbers(2); $a.send($n)
$a = numbers(2); next($a); log.append($a.throw(KeyError, 'k'))
$a = delegating($n); log.append(next($a)); log.append($a.send(2)); log.append(list($a))
$a = delegating($n); next($a); $a.throw(ValueError('q'))
$a = swallowing(); next($a); log.append($a.throw(ValueError(1)));
    log.append($a.throw(KeyError(2)))
$a = swallowing(); next($a); $a.close(); log.append(next($a, 'over'))
$a = stubborn(); next($a); $a.close()
$a = nested_yield($n); log.append([next($a), $a.send('x'), *$a])
"""
NESTED = """
$a = $x
try:
    raise $a
except Exception as e:
    log.append(e is $a)
log.append($a.__traceback__ is None)

try:
    @1
    raise ExceptionGroup('g', [ValueError($n), $x])
except* ValueError as group:
    log.append([e.args for e in group.exceptions])
except* $k:
    log.append('other')

try:
    try:
        raise ExceptionGroup('g', [KeyError(1), ExceptionGroup('h', [$x, TypeError(2)])])
    except* (KeyError, Odd) as group:
        log.append((len(group.exceptions), $n))
except ExceptionGroup as rest:
    log.append(rest)

try:
    @1
except* $k:
    log.append($n)
else:
    log.append('none')

for $+N in [1, 2, 3]:
    try:
        if $N == 2: raise $x
        @1
    except $k as error:
        log.append(type(error).__name__)
        if $c: continue
        break
    else:
        @1
else:
    log.append('no break')

try:
    try:
        @1
        raise $x
    finally:
        try:
            raise KeyError($n)
        except KeyError as inner:
            log.append(type(inner.__context__).__name__)
        @1
except Exception as outer:
    log.append((type(outer).__name__, type(outer.__context__).__name__))

try:
    try:
        raise $x
    except Exception as error:
        try:
            raise Odd($n) from error
        finally:
            log.append('mid')
except Odd as error:
    log.append((type(error.__cause__).__name__, error.__cause__ is error.__context__))
    @1

for $+N in range(3):
    try:
        try:
            @1
            if $c: break
        finally:
            log.append(('in', $N))
            if $c: continue
    finally:
        log.append(('out', $N))

def $f():
    try:
        %1
        return 'body'
    except $k:
        return 'caught'
    finally:
        log.append('cleanup')
        if $c: return 'final'
log.append($f())

def $f():
    for i in range(3):
        try:
            return i
        finally:
            if i < $3: continue
    return 'through'
log.append($f())

def $f(v):
    try:
        return 1 // v
    except ZeroDivisionError as error:
        raise ValueError('bad') from error
    finally:
        log.append(v)
try:
    log.append($f($2))
except ValueError as error:
    log.append(repr(error.__cause__))
    @1

with Quiet(Exception) as $a, noted('q'):
    @1
    with Turn():
        raise $x

with contextlib.suppress(KeyError), contextlib.suppress($k):
    $D.pop($n)
    @1
    {}[$n]

with contextlib.ExitStack() as stack:
    for i in range($2):
        stack.enter_context(noted(str(i)))
    stack.push(lambda *info: info[0] is not None)
    @1
    if $c: raise $x
log.append('behind')

with Suppressing($k) as $a:
    @1
    raise $x
log.append($a.seen)

@noted_call
def $f(v):
    %1
    return v * 2
log.append($f($n))

class $f:
    count = 0
    __slots__ = ('v',)
    def __init__(self, v):
        self.v = v
        type(self).count += 1
    def __eq__(self, other):
        return isinstance(other, $f) and self.v == other.v
    def __hash__(self):
        return hash(self.v)
log.append(({$f(1), $f($n)}.__len__(), $f.count))

class $f(Watched):
    z = Checked()
    def __init__(self):
        self.z = $n
        self.x = 1
    @classmethod
    def make(cls):
        return cls()
$a = $f.make()
@1
log.append(($a.z, $a.x, $f.__name__))

class $f(Left):
    def __getattr__(self, name):
        if name in ('deep', 'other'):
            return name
        raise AttributeError(f'no {name}')
    def __len__(self):
        return $n
$a = $f(2)
log.append(($a.deep, $a.left, bool($a) if $a.left else 0))
@1
log.append($a.missing)

@dataclasses.dataclass
class $f:
    a: int
    b: list = dataclasses.field(default_factory=list)
    c: int = dataclasses.field(init=False, default=3)
    def __post_init__(self):
        self.b.append(self.a)
$a = $f($n)
@1
log.append(($a, $a == $f($n), $a.b))

@dataclasses.dataclass(order=True, slots=True)
class $f:
    a: int
    b: str = 'x'
log.append(($f($n) < $f(1), sorted([$f(2), $f($n)])[0].a))

match $Q:
    case [1, *rest]:
        log.append(len(rest))
    case [int() as one, _]:
        @1
    case _:
        @1

match $n, $w:
    case -1 | -2, _:
        @1
    case 0, 'ab':
        @1
    case x_, y_ if x_ > 1 and y_:
        log.append((x_, y_))
    case _, str(text):
        log.append(text)

match Ring(1, $n):
    case [1, 2]:
        log.append('ring')
    case [first, second]:
        log.append((first, second))

match Bag(a=$n, b=2):
    case {'a': 1}:
        log.append('one')
    case {'b': found, **rest}:
        log.append((found, rest))

match $D:
    case {1: 2, 3: four}:
        log.append(four)
    case {1: _}:
        @1
    case {}:
        @1

match [$n, [1, {'k': ($n, None)}]]:
    case [0, _] | [_, [2, _]]:
        @1
    case [a_, [1, {'k': (b_, None)}]] if a_ != b_:
        log.append((a_, b_))
    case [_, [_, {'k': [_, None]}]]:
        log.append('same')

match $B:
    case Big(extra=e_) if e_ > 2:
        log.append(e_)
    case Box(value=v_, extra=1 | 2):
        @1
    case Box():
        @1

match Pair($n, [1]):
    case Pair(0, _):
        @1
    case Pair(left=l_, right=[r_]):
        log.append((l_, r_))

match $n:
    case True:
        @1
    case 1.0:
        log.append('float')
    case None:
        @1
    case bool() | float():
        log.append('other')
    case Level.LOW | Level.TOP:
        log.append('level')
    case _:
        @1

match $w:
    case []:
        @1
    case [*_]:
        log.append('list')
    case 'abca' as text:
        log.append(text)
    case _ if $c:
        @1

def $f(n):
    total = 0
    def add(v):
        nonlocal total
        total += v
        if v:
            add(v - 1)
        return total
    yield add(n)
    yield lambda: total
    total = 100
    yield total
$a = $f($3)
log.append(next($a))
$b = next($a)
log.append($b())
@1
log.append((next($a), $b()))

def $f(n):
    try:
        while n:
            n -= 1
            try:
                got = yield n
            except $k as error:
                got = yield type(error).__name__
            log.append(got)
    finally:
        log.append('finally')
$a = $f(3)
log.append(next($a))
log.append($a.throw($x))
@1
log.append(list($a))

def $f(*parts):
    for part in parts:
        if isinstance(part, tuple):
            yield from $f(*part)
        else:
            yield part
log.append(list($f(1, (2, ($n, 3)), ())))
@1

def $f():
    x_ = yield
    while x_ is not None:
        x_ = yield x_ * 2
$a = $f()
next($a)
log.append([$a.send(i) for i in (1, $n)])
try:
    $a.send(None)
except StopIteration as stop:
    log.append(stop.value)
    @1

async def $f(v):
    try:
        got = await Pause(v)
        log.append(got)
        return got + 1
    finally:
        log.append('left')
log.append(drive($f($n)))
@1

def $f(v):
    global total
    total = v
    def inner():
        global total
        total += 1
        del registry[v]
    registry[v] = 1
    inner()
    return total
log.append($f($n))
@1

def $f():
    seen = []
    for i in range($3):
        def each(v=i):
            seen.append((v, i))
            return len(seen)
        each()
    return [each(), *seen]
log.append($f())

def $f(a, b=[], *c, d={}, **e):
    b.append(a)
    d[a] = len(c)
    e['n'] = len(b)
    %1
    return (len(b), sorted(d), sorted(e))
log.append($f($n))
log.append($f($n, *[[], 3], z=1))
log.append(($f.__defaults__, $f.__kwdefaults__))

$a = [[1, 2], [$n, 3]]
for $b in $a:
    for $d in $b:
        if $d == $n: break
        @1
    else:
        continue
    log.append($d)
    break
else:
    log.append('whole')

$a = {1: 'a', 2: 'b', $n: 'c'}
for $b, $d in $a.items():
    if $b == 2: $a[$b] = $d * 2
    @1
    if $c: $a.pop($b)

$a = [1, 2, 3]
for $b in $a:
    if $b == 2: $a.remove(2)
    if len($a) < 5: $a.append($n)
    @1
log.append($a)

$a = set()
while len($a) < $3:
    $a.add(len($a))
    log.append('turn')
    if len(log) > 20: break
    @1
    if $c: $a.clear()

$a = $n
while $a:
    $a = $a // 2 if $a > 0 else $a + 1
    if $a == 2: continue
    @1
else:
    log.append('zero')
"""
