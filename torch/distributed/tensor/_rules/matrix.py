"""Products of matrices, by their letters; attention and convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.distributed.tensor._rules import rule
from torch.distributed.tensor._signature import Dims, Letters, Signature, broadcast_dims

if TYPE_CHECKING:
    from torch.distributed.tensor._dispatch import Call


def product(call: Call, equation: str, first: int = 0) -> Signature:
    """The signature that an equation like `ik,kj->ij` describes, of the call's tensors from `first`
    on. Letters that the result lacks are summed over; `!x` freezes a letter."""
    left, _, right = equation.partition("->")
    letters = Letters()
    named: dict[str, int] = {}
    frozen: set[int] = set()

    def dims(word: str, shape: tuple[int, ...]) -> Dims:
        made = []
        blocked = False
        names = []
        for sign in word:
            if sign == "!":
                blocked = True
                continue
            names.append((sign, blocked))
            blocked = False
        for (sign, block), size in zip(names, shape, strict=True):
            letter = named.get(sign)
            if letter is None:
                letter = named[sign] = letters.new(size)
            if block or letters.sizes[letter] != size:
                frozen.add(letter)
            made.append((letter,))
        return tuple(made)

    inputs = {
        first + n: dims(word, call.tensors[first + n].shape)
        for n, word in enumerate(left.split(","))
    }
    outputs = {
        o: dims(word, meta.shape)
        for o, (word, meta) in enumerate(zip(right.split(","), call.results, strict=True))
    }
    kept = {letter for tensor in outputs.values() for dim in tensor for letter in dim}
    return Signature(
        inputs,
        outputs,
        letters.sizes,
        reduces={letter: "sum" for letter in letters.sizes if letter not in kept},
        frozen=frozen,
    )


_EQUATIONS = {"mm": "ik,kj->ij", "bmm": "bik,bkj->bij", "mv": "ik,k->i", "dot": "k,k->"}
_EQUATIONS |= {"vdot": "k,k->", "ger": "i,j->ij", "outer": "i,j->ij"}


@rule("mm bmm mv dot vdot ger outer")
def plain(call: Call) -> Signature:
    """A product is linear in each factor."""
    made = product(call, _EQUATIONS[call.op._schema.name.rpartition("::")[2]])
    made.linear = [(frozenset([0]), ("sum", "avg")), (frozenset([1]), ("sum", "avg"))]
    return made


@rule("addmm baddbmm addmv addbmm _addmm_activation")
def added(call: Call) -> Signature:
    """A product plus a tensor that is broadcast to it."""
    name = call.op._schema.name.rpartition("::")[2].rstrip("_")
    equations = {"addmm": "ik,kj->ij", "baddbmm": "bik,bkj->bij", "addmv": "ik,k->i"}
    equations["addbmm"] = "bik,bkj->ij"
    equations["_addmm_activation"] = "ik,kj->ij"
    made = product(call, equations[name], first=1)
    letters = Letters()
    letters.sizes = made.sizes_of
    bias = broadcast_dims(letters, made.outputs[0], call.tensors[0].shape)
    made.inputs = {0: bias, **made.inputs}
    if name == "_addmm_activation":
        made.reduces = {}
    made.added = {0}
    return made


_ATTENTION = "_scaled_dot_product_"


@rule(
    f"{_ATTENTION}flash_attention_for_cpu {_ATTENTION}flash_attention "
    f"{_ATTENTION}efficient_attention {_ATTENTION}cudnn_attention "
    f"{_ATTENTION}flash_attention_for_cpu_backward {_ATTENTION}flash_attention_backward "
    f"{_ATTENTION}efficient_attention_backward {_ATTENTION}cudnn_attention_backward"
)
def attention(call: Call) -> Signature:
    """Batches and heads are independent; a query needs all keys. The same holds backwards."""
    letters = Letters()
    query = next(spec for spec in call.tensors if len(spec.shape) == 4)
    batch, heads = query.shape[:2]
    b, h = letters.new(batch), letters.new(heads)
    frozen: set[int] = set()

    def dims(shape: tuple[int, ...]) -> Dims:
        made: list[tuple[int, ...]] = []
        for i, size in enumerate(shape):
            if len(shape) >= 3 and i == 0 and size == batch:
                made.append((b,))
            elif len(shape) >= 3 and i == 1 and size == heads:
                made.append((h,))
            elif len(shape) >= 3 and i < 2 and size == 1:
                made.append(())
            else:
                if len(shape) >= 3 and i < 2:
                    frozen.add(h if i else b)
                letter = letters.new(size)
                frozen.add(letter)
                made.append((letter,))
        return tuple(made)

    inputs = {i: dims(spec.shape) for i, spec in enumerate(call.tensors)}
    outputs = {o: dims(meta.shape) for o, meta in enumerate(call.results)}
    made = Signature(inputs, outputs, letters.sizes, frozen=frozen)
    # Seeds and offsets of a dropout are numbers.
    made.whole = {(o, x) for o, d in outputs.items() if len(d) < 3 for x in (b, h)}
    return made


@rule("convolution _convolution")
def convolution(call: Call) -> Signature:
    """`n c *, o c k* -> n o *`: batch and channels are free, positions whole."""
    space = len(call.shape("input")) - 2
    letters = [chr(ord("P") + i) for i in range(space)]
    image = "".join(f"!{x}" for x in letters)
    kernel = "".join(f"!{x.lower()}" for x in letters)
    grown = "".join(f"!{chr(ord('A') + i)}" for i in range(space))
    if call.arguments.get("transposed"):
        equation = f"nc{image},co{kernel}->no{grown}"
    else:
        equation = f"nc{image},oc{kernel}->no{grown}"
    if call.arguments.get("groups", 1) != 1:
        equation = f"n!c{image},!o!g{kernel}->n!o{grown}"
    made = product(call, equation)
    if call.arguments.get("bias") is not None:
        made.inputs[call.at("bias")] = (made.outputs[0][1],)
        made.added = {call.at("bias")}
    return made


@rule("convolution_backward")
def convolution_backward(call: Call) -> Signature:
    """Gradients of image, kernel and bias: each sums over what it lacks. The bias does not depend
    on the input's channels."""
    space = len(call.shape("input")) - 2
    letters = Letters()
    n, c = letters.new(call.shape("input")[0]), letters.new(call.shape("input")[1])
    o = letters.new(call.shape("grad_output")[1])
    frozen: set[int] = set()

    def still(sizes: tuple[int, ...]) -> Dims:
        made = letters.dims(sizes)
        frozen.update(dim[0] for dim in made)
        return made

    image = still(call.shape("input")[2:])
    kernel = still(call.shape("weight")[2:])
    grown = still(call.shape("grad_output")[2:])
    swapped = bool(call.arguments["transposed"])
    weight = ((c,), (o,), *kernel) if swapped else ((o,), (c,), *kernel)
    if call.arguments["groups"] != 1:
        frozen |= {c, o}
        other = letters.new(call.shape("weight")[1])
        frozen.add(other)
        weight = ((c if swapped else o,), (other,), *kernel)
    every = [((n,), (c,), *image), weight, ((o,),)]
    mask = call.arguments["output_mask"]
    outputs = dict(enumerate(d for d, wanted in zip(every, mask, strict=True) if wanted))
    made = Signature(
        {0: ((n,), (o,), *grown), 1: ((n,), (c,), *image), 2: weight},
        outputs,
        letters.sizes,
        reduces={n: "sum", o: "sum"},
        frozen=frozen,
    )
    if mask[2]:
        made.whole = {(len(outputs) - 1, c)}
    if space and len(call.tensors) != 3:
        raise NotImplementedError(f"{call.op}: expected three tensors, got {len(call.tensors)}")
    return made


@rule(
    "_linalg_eigh _linalg_svd _linalg_det _linalg_slogdet linalg_qr linalg_eig linalg_cholesky_ex "
    "linalg_inv_ex linalg_lu linalg_lu_factor_ex linalg_matrix_exp cholesky_inverse cholesky"
)
def of_matrices(call: Call) -> Signature:
    """What is computed of each matrix of a batch as a whole: the batch alone can be cut."""
    letters = Letters()
    shape = call.tensors[0].shape
    batch = tuple((letters.new(size),) for size in shape[:-2])
    frozen: set[int] = set()

    def dims(sizes: tuple[int, ...]) -> Dims:
        own = [letters.new(size) for size in sizes[len(batch) :]]
        frozen.update(own)
        return batch[: len(sizes)] + tuple((letter,) for letter in own)

    inputs = {0: dims(shape)}
    outputs = {o: dims(tuple(meta.shape)) for o, meta in enumerate(call.results)}
    return Signature(inputs, outputs, letters.sizes, frozen=frozen)
