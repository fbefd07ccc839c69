"""The adaptive softmax: frequent classes in one small softmax, rare ones in clusters behind it."""

from __future__ import annotations

from collections import namedtuple

import torch
from torch.nn import functional as F
from torch.nn.modules.container import ModuleList, Sequential
from torch.nn.modules.linear import Linear
from torch.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of the target classes and their mean loss, for classes sorted by how often
    they occur. Cluster i has width in_features / div_value^(i + 1)."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs,
        div_value=4.0,
        head_bias: bool = False,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        valid = (
            cutoffs == sorted(set(cutoffs))
            and min(cutoffs) > 0
            and max(cutoffs) <= n_classes - 1
            and all(int(c) == c for c in cutoffs)
        )
        if not valid:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        options = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            count = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **options),
                    Linear(width, count, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def _check(self, input, target) -> None:
        if target.dim() == 1:
            if input.size(0) != target.size(0):
                raise RuntimeError(
                    "Input and target should have the same size in the batch dimension."
                )
            if input.dim() != 2:
                raise RuntimeError(
                    "1D target tensor expects 2D input tensors, but found inputs with size",
                    input.size(),
                )
        elif target.dim() == 0:
            if input.dim() != 1:
                raise RuntimeError(
                    "0D target tensor expects 1D input tensors, but found inputs with size",
                    input.size(),
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")

    def forward(self, input_, target_) -> _ASMoutput:
        self._check(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        used = 0
        # Rows of the shortlist have no cluster: nothing is added to what the head says.
        output = input.new_zeros(target.size(0))
        gather = target.clone()
        edges = [0, *self.cutoffs]
        for i in range(len(edges) - 1):
            inside = (target >= edges[i]) & (target < edges[i + 1])
            rows = inside.nonzero().reshape(-1)
            used += rows.numel()
            if i == 0 or rows.numel() == 0:
                continue
            relative = target.index_select(0, rows) - edges[i]
            log_cluster = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            log_prob = log_cluster.gather(1, relative.unsqueeze(1)).squeeze(1)
            gather.index_fill_(0, rows, self.shortlist_size + i - 1)
            output = output.index_copy(0, rows, log_prob)
        if used != target.numel():
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        return self._finish(input, output, gather, batched)

    def _finish(self, input, output, gather, batched):
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, gather.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input, head_output) -> torch.Tensor:
        out = input.new_empty((head_output.size(0), self.n_classes))
        head = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        pairs = zip(self.cutoffs, self.cutoffs[1:], strict=False)
        for i, (start, stop) in enumerate(pairs):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            out[:, start:stop] = cluster + head[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input) -> torch.Tensor:
        """The log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input) -> torch.Tensor:
        """The most probable class of each row, without computing clusters that cannot hold it."""
        head = self.head(input)
        best = head.argmax(dim=1)
        rare = best >= self.shortlist_size
        if rare.any():
            best[rare] = self._get_full_log_prob(input[rare], head[rare]).argmax(dim=1)
        return best
