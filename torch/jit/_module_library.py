"""Methods of torch.nn's modules in the scripted language, where the library's own are not: they are
made by loops over names, or walk tables of parameters. The text of a method is made for the type of
the module, which knows its parameters."""

from __future__ import annotations

import linecache
import typing
from collections.abc import Callable

import torch
from torch.nn import functional as F

# The forward of a recurrent layer for packed sequences, which Python's own has in one.
PACKED_FORWARD = "_forward_packed"
_made: dict[tuple[str, str], object] = {}


def method_of(kind, name: str) -> object | None:
    """The scriptable method of a module's type, unless a class outside of torch.nn replaced it."""
    cls = kind.python
    plain = "forward" if name == PACKED_FORWARD else name
    owner = next((b for b in cls.__mro__ if plain in vars(b)), None)
    if owner is None or not owner.__module__.startswith("torch.nn.modules"):
        return None
    text = None
    written = (_WRITERS.get((base.__name__, name)) for base in owner.__mro__)
    writer = next((w for w in written if w is not None), None)
    if writer is not None:
        text = writer(kind)
    elif name == "forward":
        text = _by_closure(owner)
    if text is None:
        return None
    key = (owner.__name__, text)
    if key not in _made:
        _made[key] = _compile(text, owner.__name__, name)
    return _made[key]


def _by_closure(owner: type) -> str | None:
    """Modules that a function of torch.nn made: the closure says which function they call."""
    closure = _closure(vars(owner)["forward"])
    function = closure.get("function")
    if not isinstance(function, str):
        return None
    if owner.__module__.endswith("activation"):
        given = "".join(f", {key}=self.{key}" for key in closure.get("defaults", ()))
    elif owner.__module__.endswith("dropout"):
        given = ", self.p, self.training, self.inplace"
    else:
        return None
    return f"def forward(self, input: Tensor) -> Tensor:\n    return F.{function}(input{given})\n"


def _closure(fn) -> dict[str, object]:
    code = getattr(fn, "__code__", None)
    if code is None:
        return {}
    cells = zip(code.co_freevars, fn.__closure__ or (), strict=False)
    return {name: cell.cell_contents for name, cell in cells}


def _compile(text: str, label: str, name: str) -> object:
    filename = f"<torch.nn.{label}.{name} {len(_made)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, object] = {
        "torch": torch,
        "F": F,
        "Tensor": torch.Tensor,
        "__name__": "torch.nn",
        "Optional": typing.Optional,
        "Tuple": tuple,
        "List": list,
    }
    if "PackedSequence" in text:
        scope["PackedSequence"] = torch.nn.utils.rnn.PackedSequence
    if "_ASMoutput" in text:
        from torch.nn.modules.adaptive import _ASMoutput

        scope["_ASMoutput"] = _ASMoutput
    exec(compile(text, filename, "exec"), scope)
    return scope[name]


# ---- recurrent layers


def _weights(kind) -> str:
    names = [n for n, role in kind.roles.items() if role == "parameter"]
    return ", ".join(f"self.{n}" for n in names)


def _constant(kind, name: str, default: object) -> object:
    return kind.constants[name][0] if name in kind.constants else default


def _recurrent(cell: str, two: bool) -> Callable[[object], str]:
    def write(kind) -> str:
        state = "Tuple[Tensor, Tensor]" if two else "Tensor"
        zeros = "torch.zeros(layers, batch, self.hidden_size, dtype=dtype, device=device)"
        if two:
            size = "self.proj_size if self.proj_size > 0 else self.hidden_size"
            start = f"(torch.zeros(layers, batch, {size}, dtype=dtype, device=device), {zeros})"
        else:
            start = zeros
        given = "[hx[0], hx[1]]" if two else "hx"
        head = f"def forward(self, input: Tensor, hx: Optional[{state}] = None)"
        body = f"""{head} -> Tuple[Tensor, {state}]:
    dtype, device = input.dtype, input.device
    layers = self.num_layers * (2 if self.bidirectional else 1)
    batched = input.dim() == 3
    axis = 0 if self.batch_first else 1
    if not batched:
        input = input.unsqueeze(axis)
    batch = input.size(axis)
    if hx is None:
        hx = {start}
    elif not batched:
        hx = {"(hx[0].unsqueeze(1), hx[1].unsqueeze(1))" if two else "hx.unsqueeze(1)"}
    weights = [{_weights(kind)}]
    result = torch.{cell}(input, {given}, weights, self.bias, self.num_layers, self.dropout,
        self.training, self.bidirectional, self.batch_first)
    output = result[0]
"""
        if two:
            body += """    hidden = (result[1], result[2])
    if not batched:
        return output.squeeze(axis), (hidden[0].squeeze(1), hidden[1].squeeze(1))
"""
        else:
            body += """    hidden = result[1]
    if not batched:
        return output.squeeze(axis), hidden.squeeze(1)
"""
        return body + "    return output, hidden\n"

    return write


def _packed(cell: str, two: bool) -> Callable[[object], str]:
    def write(kind) -> str:
        state = "Tuple[Tensor, Tensor]" if two else "Tensor"
        zeros = "torch.zeros(layers, batch, {}, dtype=data.dtype, device=data.device)"
        start, given, last = zeros.format("self.hidden_size"), "hx", "result[1]"
        moved = "{0}.index_select(1, {1})"
        if two:
            size = "self.proj_size if self.proj_size > 0 else self.hidden_size"
            start, given = f"({zeros.format(size)}, {start})", "[hx[0], hx[1]]"
            last = "(result[1], result[2])"
            moved = "({0}[0].index_select(1, {1}), {0}[1].index_select(1, {1}))"
        head = f"def {PACKED_FORWARD}(self, input: PackedSequence, hx: Optional[{state}] = None)"
        return f"""{head} -> Tuple[PackedSequence, {state}]:
    data, sizes, order, back = input
    layers = self.num_layers * (2 if self.bidirectional else 1)
    batch = int(sizes[0])
    if hx is None:
        hx = {start}
    elif order is not None:
        hx = {moved.format("hx", "order")}
    weights = [{_weights(kind)}]
    result = torch.{cell}(data, sizes, {given}, weights, self.bias, self.num_layers, self.dropout,
        self.training, self.bidirectional)
    hidden = {last}
    if back is not None:
        hidden = {moved.format("hidden", "back")}
    return PackedSequence(result[0], sizes, order, back), hidden
"""

    return write


def _rnn(kind) -> str | None:
    return _recurrent(_rnn_cell(kind), False)(kind)


def _packed_rnn(kind) -> str | None:
    return _packed(_rnn_cell(kind), False)(kind)


def _rnn_cell(kind) -> str:
    mode = _constant(kind, "mode", None) or _constant(kind, "nonlinearity", "tanh")
    return "rnn_relu" if "relu" in str(mode).lower() else "rnn_tanh"


def _cell(function: str, two: bool) -> Callable[[object], str]:
    def write(kind) -> str:
        state = "Tuple[Tensor, Tensor]" if two else "Tensor"
        zeros = (
            "torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)"
        )
        name = function
        if function == "rnn":
            name = f"rnn_{_constant(kind, 'nonlinearity', 'tanh')}_cell"
        start = f"({zeros}, {zeros})" if two else zeros
        given = "[hx[0], hx[1]]" if two else "hx"
        widen = "(hx[0].unsqueeze(0), hx[1].unsqueeze(0))" if two else "hx.unsqueeze(0)"
        narrow = "(out[0].squeeze(0), out[1].squeeze(0))" if two else "out.squeeze(0)"
        return f"""def forward(self, input: Tensor, hx: Optional[{state}] = None) -> {state}:
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        hx = {start}
    elif not batched:
        hx = {widen}
    out = torch.{name}(input, {given}, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    if not batched:
        return {narrow}
    return out
"""

    return write


# ---- attention


def _attention(kind) -> str:
    packed = (
        kind.attributes.get("in_proj_weight") is not None
        and str(kind.attributes["in_proj_weight"]) == "Tensor"
    )
    if packed:
        weights = "w_q, w_k, w_v = self.in_proj_weight.chunk(3)"
    else:
        weights = "w_q, w_k, w_v = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight"
    return f"""def forward(self, query: Tensor, key: Tensor, value: Tensor,
            key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
            attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True,
            is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
    batched = query.dim() == 3
    if batched and self.batch_first:
        query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    {weights}
    if self.in_proj_bias is None:
        q, k, v = F.linear(query, w_q), F.linear(key, w_k), F.linear(value, w_v)
    else:
        b_q, b_k, b_v = self.in_proj_bias.chunk(3)
        q, k, v = F.linear(query, w_q, b_q), F.linear(key, w_k, b_k), F.linear(value, w_v, b_v)
    target, batch, heads = q.size(0), q.size(1), self.num_heads
    extra = 0
    if self.bias_k is not None and self.bias_v is not None:
        k = torch.cat([k, self.bias_k.expand(1, batch, -1)])
        v = torch.cat([v, self.bias_v.expand(1, batch, -1)])
        extra += 1
    q = q.reshape(target, batch * heads, self.head_dim).transpose(0, 1)
    k = k.reshape(k.size(0), batch * heads, self.head_dim).transpose(0, 1)
    v = v.reshape(v.size(0), batch * heads, self.head_dim).transpose(0, 1)
    if self.add_zero_attn:
        blank = torch.zeros(batch * heads, 1, self.head_dim, dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, blank], 1), torch.cat([v, blank], 1)
        extra += 1
    scores = torch.bmm(q, k.transpose(1, 2)) / float(self.head_dim) ** 0.5
    source = k.size(1)
    if attn_mask is not None:
        mask = attn_mask
        if mask.dtype == torch.bool:
            zeros = torch.zeros(mask.size(), dtype=q.dtype, device=q.device)
            mask = zeros.masked_fill_(mask, float("-inf"))
        if extra > 0:
            mask = F.pad(mask, [0, extra])
        scores = scores + mask
    if key_padding_mask is not None:
        padding = key_padding_mask
        if padding.dtype == torch.bool:
            open_ = torch.zeros(padding.size(), dtype=q.dtype, device=q.device)
            padding = open_.masked_fill_(padding, float("-inf"))
        if extra > 0:
            padding = F.pad(padding, [0, extra])
        padding = padding.view(batch, 1, 1, source).expand(-1, heads, -1, -1)
        scores = scores + padding.reshape(batch * heads, 1, source)
    weights = torch.softmax(scores, -1)
    mixed = weights
    if self.dropout > 0.0:
        mixed = torch.dropout(weights, self.dropout, self.training)
    out = torch.bmm(mixed, v).transpose(0, 1).reshape(target, batch, -1)
    out = F.linear(out, self.out_proj.weight, self.out_proj.bias)
    if not batched:
        out = out.squeeze(1)
    elif self.batch_first:
        out = out.transpose(0, 1)
    if not need_weights:
        return out, None
    shown = weights.view(batch, heads, target, source)
    if average_attn_weights:
        shown = shown.mean(1)
    if not batched:
        shown = shown.squeeze(0)
    return out, shown
"""


def _transposed(kind) -> str:
    n = len(_constant(kind, "kernel_size", (0,)))
    return f"""def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    extra = list(self.output_padding)
    if output_size is not None:
        first = input.dim() - {n}
        wanted = output_size[len(output_size) - {n}:]
        extra = torch.jit.annotate(List[int], [])
        for i in range({n}):
            low = (input.size(first + i) - 1) * self.stride[i] - 2 * self.padding[i]
            low = low + self.dilation[i] * (self.kernel_size[i] - 1) + 1
            if wanted[i] < low or wanted[i] >= low + self.stride[i]:
                raise ValueError(f"an output size of {{output_size}} cannot be reached")
            extra.append(wanted[i] - low)
    return F.conv_transpose{n}d(input, self.weight, self.bias, self.stride, self.padding, extra,
                                self.groups, self.dilation)
"""


def _instance_norm(kind) -> str:
    return """def forward(self, input: Tensor) -> Tensor:
    batch = self.training or not self.track_running_stats
    rate = 0.0 if self.momentum is None else self.momentum
    return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                           batch, rate, self.eps)
"""


def _batch_norm_alone(kind) -> str:
    """Without processes that work together there is one batch: scripted code has no others."""
    return """def forward(self, input: Tensor) -> Tensor:
    if input.dim() < 2:
        raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
    batch = self.training or (self.running_mean is None and self.running_var is None)
    rate = 0.0 if self.momentum is None else self.momentum
    if self.training and self.num_batches_tracked is not None:
        self.num_batches_tracked.add_(1)
        if self.momentum is None:
            rate = 1.0 / float(self.num_batches_tracked)
    return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                        batch, rate, self.eps)
"""


def _cross_map(kind) -> str:
    return """def forward(self, input: Tensor) -> Tensor:
    if input.dim() != 4:
        raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
    half = (int(self.size) - 1) // 2
    square = input * input
    total = F.pad(square, [0, 0, 0, 0, half, half]).unfold(1, 2 * half + 1, 1).sum(-1)
    total[:, half + 1:] += square[:, :1]
    scale = total * (self.alpha / float(self.size)) + self.k
    return input / scale.pow(self.beta)
"""


def _encoder(kind) -> str:
    last = "output" if str(kind.attributes.get("norm", "NoneType")) == "NoneType" else (
        "self.norm(output)")  # fmt: skip
    return f"""def forward(self, src: Tensor, mask: Optional[Tensor] = None,
            src_key_padding_mask: Optional[Tensor] = None,
            is_causal: Optional[bool] = None) -> Tensor:
    output = src
    causal = False if is_causal is None else is_causal
    for layer in self.layers:
        output = layer(output, src_mask=mask, is_causal=causal,
                       src_key_padding_mask=src_key_padding_mask)
    return {last}
"""


def _decoder(kind) -> str:
    last = "output" if str(kind.attributes.get("norm", "NoneType")) == "NoneType" else (
        "self.norm(output)")  # fmt: skip
    return f"""def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor] = None,
            memory_mask: Optional[Tensor] = None, tgt_key_padding_mask: Optional[Tensor] = None,
            memory_key_padding_mask: Optional[Tensor] = None,
            tgt_is_causal: Optional[bool] = None, memory_is_causal: bool = False) -> Tensor:
    output = tgt
    causal = False if tgt_is_causal is None else tgt_is_causal
    for layer in self.layers:
        output = layer(output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                       tgt_key_padding_mask=tgt_key_padding_mask,
                       memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                       memory_is_causal=memory_is_causal)
    return {last}
"""


def _transformer(kind) -> str:
    masks = "".join(
        f", {of}_{kind}: Optional[Tensor] = None"
        for kind in ("mask", "key_padding_mask")
        for of in ("src", "tgt", "memory")
    )
    return f"""def forward(self, src: Tensor, tgt: Tensor{masks},
            src_is_causal: Optional[bool] = None, tgt_is_causal: Optional[bool] = None,
            memory_is_causal: bool = False) -> Tensor:
    batch = 0 if self.batch_first else 1
    if src.dim() == 3 and tgt.dim() == 3 and src.size(batch) != tgt.size(batch):
        raise RuntimeError("the batch number of src and tgt must be equal")
    if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
        raise RuntimeError("the feature number of src and tgt must be equal to d_model")
    memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask,
                          is_causal=src_is_causal)
    return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                        tgt_key_padding_mask=tgt_key_padding_mask,
                        memory_key_padding_mask=memory_key_padding_mask,
                        tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)
"""


def _unpool(kind) -> str:
    n = len(kind.attributes["kernel_size"].contained) if "kernel_size" in kind.attributes else len(
        _constant(kind, "kernel_size", ()))  # fmt: skip
    return f"""def forward(self, input: Tensor, indices: Tensor,
            output_size: Optional[List[int]] = None) -> Tensor:
    return F.max_unpool{n}d(input, indices, self.kernel_size, self.stride, self.padding,
                            output_size)
"""


def _adaptive(kind) -> str:
    cutoffs = [n for n in kind.attributes if n == "cutoffs"]
    count = len(kind.attributes["tail"].attributes) if cutoffs else 0
    tails = "".join(
        f"""    inside = (target >= cutoffs[{i}]) & (target < cutoffs[{i + 1}])
    rows = inside.nonzero().reshape(-1)
    used += rows.numel()
    if rows.numel() > 0:
        relative = target.index_select(0, rows) - cutoffs[{i}]
        found = F.log_softmax(self.tail[{i}](input.index_select(0, rows)), dim=1)
        gather.index_fill_(0, rows, self.shortlist_size + {i})
        output = output.index_copy(0, rows, found.gather(1, relative.unsqueeze(1)).squeeze(1))
"""
        for i in range(count)
        if f"{i}" in kind.attributes["tail"].attributes
    )
    return f"""def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
    batched = target_.dim() > 0
    input = input_ if batched else input_.unsqueeze(0)
    target = target_ if batched else target_.unsqueeze(0)
    if input.dim() != 2 or target.dim() != 1 or input.size(0) != target.size(0):
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    cutoffs = self.cutoffs
    output = torch.zeros([target.size(0)], dtype=input.dtype, device=input.device)
    gather = target.clone()
    used = ((target >= 0) & (target < cutoffs[0])).nonzero().size(0)
{tails}    if used != target.numel():
        raise RuntimeError(f"Target values should be in [0, {{self.n_classes - 1}}]")
    head = F.log_softmax(self.head(input), dim=1)
    output = output + head.gather(1, gather.unsqueeze(1)).squeeze(1)
    loss = (-output).mean()
    if not batched:
        output = output.squeeze(0)
    return _ASMoutput(output, loss)
"""


def _triplet(kind) -> str:
    return """def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    near = self.distance_function(anchor, positive)
    far = self.distance_function(anchor, negative)
    if self.swap:
        far = torch.minimum(far, self.distance_function(positive, negative))
    loss = torch.clamp_min(self.margin + near - far, 0)
    if self.reduction == "mean":
        return loss.mean()
    if self.reduction == "sum":
        return loss.sum()
    return loss
"""


_WRITERS = {
    ("Transformer", "forward"): _transformer,
    ("TransformerDecoder", "forward"): _decoder,
    ("MaxUnpool1d", "forward"): _unpool,
    ("MaxUnpool2d", "forward"): _unpool,
    ("MaxUnpool3d", "forward"): _unpool,
    ("SyncBatchNorm", "forward"): _batch_norm_alone,
    ("CrossMapLRN2d", "forward"): _cross_map,
    ("TransformerEncoder", "forward"): _encoder,
    ("AdaptiveLogSoftmaxWithLoss", "forward"): _adaptive,
    ("TripletMarginWithDistanceLoss", "forward"): _triplet,
    ("_ConvTransposeNd", "forward"): _transposed,
    ("_InstanceNorm", "forward"): _instance_norm,
    ("LSTM", "forward"): _recurrent("lstm", True),
    ("GRU", "forward"): _recurrent("gru", False),
    ("RNN", "forward"): _rnn,
    ("LSTM", PACKED_FORWARD): _packed("lstm", True),
    ("GRU", PACKED_FORWARD): _packed("gru", False),
    ("RNN", PACKED_FORWARD): _packed_rnn,
    ("LSTMCell", "forward"): _cell("lstm_cell", True),
    ("GRUCell", "forward"): _cell("gru_cell", False),
    ("RNNCell", "forward"): _cell("rnn", False),
    ("MultiheadAttention", "forward"): _attention,
}
