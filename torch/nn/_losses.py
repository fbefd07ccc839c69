"""The losses of torch.nn.functional, a file of their own because they are many. Each turns the word
of the reduction into the operator's number, honours the two older flags, and calls the operator."""

import math
import warnings

import torch
from torch import _C
from torch.nn._reduction import get_enum, legacy_get_string
from torch.overrides import has_torch_function_variadic, redirect

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


_NONE, _MEAN, _SUM = (get_enum(word) for word in ("none", "mean", "sum"))


def _number(size_average, reduce, reduction) -> int:
    """The operator's reduction; the older flags win where they are given."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    return get_enum(reduction)


def _reduced(loss, number) -> torch.Tensor:
    """A loss that no operator reduces."""
    if number == _NONE:
        return loss
    return loss.sum() if number == _SUM else loss.mean()


def _check_margin(margin) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def _warn_sizes(input, target) -> None:
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def _check_weights(weight, input) -> None:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")


def _weighted(operator, input, target, size_average, reduce, reduction, weight):
    """A loss with a weight for each element. A mean is divided by the sum of the weights."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    _check_weights(weight, input)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(
            f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'."
        )
    loss = operator(input, target, _NONE) * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduced(loss, get_enum(reduction))


# ---- regression
# ----------------------------------------------------------------------------------------------


def mse_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """The squared difference."""
    if has_torch_function_variadic(input, target, weight):
        return redirect(mse_loss, locals())
    _warn_sizes(input, target)
    if weight is None:
        return _C._nn.mse_loss(input, target, _number(size_average, reduce, reduction))
    return _weighted(_C._nn.mse_loss, input, target, size_average, reduce, reduction, weight)


def l1_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """The absolute difference."""
    if has_torch_function_variadic(input, target, weight):
        return redirect(l1_loss, locals())
    _warn_sizes(input, target)
    if weight is None:
        return _C._nn.l1_loss(input, target, _number(size_average, reduce, reduction))
    return _weighted(_C._nn.l1_loss, input, target, size_average, reduce, reduction, weight)


def smooth_l1_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta=1.0,
) -> torch.Tensor:
    """The absolute difference, squared below beta."""
    if has_torch_function_variadic(input, target):
        return redirect(smooth_l1_loss, locals())
    _warn_sizes(input, target)
    number = _number(size_average, reduce, reduction)
    if beta == 0:
        return _C._nn.l1_loss(input, target, number)
    return _C._nn.smooth_l1_loss(input, target, number, beta)


def huber_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    reduction: str = "mean",
    delta=1.0,
    weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """Half the squared difference, linear above delta."""
    if has_torch_function_variadic(input, target, weight):
        return redirect(huber_loss, locals())
    _warn_sizes(input, target)
    if weight is None:
        return _C._nn.huber_loss(input, target, get_enum(reduction), delta)
    _check_weights(weight, input)
    loss = _C._nn.huber_loss(input, target, _NONE, delta) * weight
    return _reduced(loss, get_enum(reduction))


def poisson_nll_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """The negative log-likelihood of a Poisson distribution with mean exp(input), or input."""
    if has_torch_function_variadic(input, target):
        return redirect(poisson_nll_loss, locals())
    number = _number(size_average, reduce, reduction)
    return torch.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    var,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> torch.Tensor:
    """The negative log-likelihood of a normal distribution with mean input and variance var."""
    if has_torch_function_variadic(input, target, var):
        return redirect(gaussian_nll_loss, locals())
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = torch.full_like(input, var)
    elif torch.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (
            var.ndim == input.ndim
            and sum(a != b for a, b in zip(input.size(), var.size(), strict=True)) == 1
            and 1 in var.size()
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    # The floor only guards the division: no gradient flows through it.
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, get_enum(reduction))


# ---- classification
# ------------------------------------------------------------------------------------------


def cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    ignore_index=-100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing=0.0,
) -> torch.Tensor:
    """nll_loss of log_softmax, for class numbers or class probabilities."""
    if has_torch_function_variadic(input, target, weight):
        return redirect(cross_entropy, locals())
    number = _number(size_average, reduce, reduction)
    return _C._nn.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def linear_cross_entropy(
    input: torch.Tensor,
    linear_weight,
    target: torch.Tensor,
    *,
    linear_bias=None,
    weight: torch.Tensor | None = None,
    reduction: str = "mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
) -> torch.Tensor:
    """cross_entropy of a linear map: linear_weight is (classes, ..., features)."""
    tensors = (input, linear_weight, target, linear_bias, weight)
    if has_torch_function_variadic(*tensors):
        return redirect(linear_cross_entropy, locals())
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
        )
    shape, features = tuple(linear_weight.size()), linear_weight.size(-1)
    if input.size(-1) != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.size(-1)} and {features}, respectively"
        )
    if input.dim() == 1 and len(shape) > 2:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {shape} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.size())}"
        )
    if linear_bias is not None and tuple(linear_bias.size()) != shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {shape[:-1]}, got {tuple(linear_bias.size())}"
        )
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = torch.nn.functional.linear(input, linear_weight.flatten(0, -2), bias)
    logits = logits.reshape(input.size()[:-1] + linear_weight.size()[:-1])
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip


def nll_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    ignore_index=-100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """The negative log-likelihood of the target classes, from log-probabilities."""
    if has_torch_function_variadic(input, target, weight):
        return redirect(nll_loss, locals())
    number = _number(size_average, reduce, reduction)
    return _C._nn.nll_loss_nd(input, target, weight, number, ignore_index)


def binary_cross_entropy(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """The cross entropy of probabilities and targets between 0 and 1."""
    if has_torch_function_variadic(input, target, weight):
        return redirect(binary_cross_entropy, locals())
    number = _number(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    return _C._nn.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: torch.Tensor | None = None,
) -> torch.Tensor:
    """binary_cross_entropy of sigmoid(input), exact for large inputs."""
    if has_torch_function_variadic(input, target, weight, pos_weight):
        return redirect(binary_cross_entropy_with_logits, locals())
    number = _number(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> torch.Tensor:
    """The Kullback-Leibler divergence; input holds log-probabilities."""
    if has_torch_function_variadic(input, target):
        return redirect(kl_div, locals())
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            stacklevel=2,
        )
    batchmean = reduction == "batchmean"
    loss = torch.kl_div(
        input, target, _SUM if batchmean else get_enum(reduction), log_target=log_target
    )
    return loss / input.size()[0] if batchmean and input.dim() != 0 else loss


def soft_margin_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """log(1 + exp(-target * input)) for targets 1 and -1."""
    if has_torch_function_variadic(input, target):
        return redirect(soft_margin_loss, locals())
    return _C._nn.soft_margin_loss(input, target, _number(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """The mean over classes of the cross entropy of sigmoid(input) and the target."""
    if has_torch_function_variadic(input, target, weight):
        return redirect(multilabel_soft_margin_loss, locals())
    if size_average is None and reduce is None and reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    number = _number(size_average, reduce, reduction)
    log_sigmoid = torch.nn.functional.logsigmoid
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    return _reduced(loss, number)


def multilabel_margin_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """The hinge loss between every target class and every other class."""
    if has_torch_function_variadic(input, target):
        return redirect(multilabel_margin_loss, locals())
    return _C._nn.multilabel_margin_loss(input, target, _number(size_average, reduce, reduction))


def multi_margin_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    p=1,
    margin: float = 1.0,
    weight: torch.Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """The hinge loss between the target class and every other class."""
    if has_torch_function_variadic(input, target, weight):
        return redirect(multi_margin_loss, locals())
    number = _number(size_average, reduce, reduction)
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _C._nn.multi_margin_loss(input, target, p, margin, weight, number)


def ctc_loss(
    log_probs: torch.Tensor,
    targets,
    input_lengths,
    target_lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> torch.Tensor:
    """The negative log-likelihood of label sequences under all their alignments to the frames."""
    tensors = (log_probs, targets, input_lengths, target_lengths)
    if has_torch_function_variadic(*tensors):
        return redirect(ctc_loss, locals())
    return torch.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, get_enum(reduction), zero_infinity
    )


# ---- embeddings
# ----------------------------------------------------------------------------------------------


def hinge_embedding_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """input where the target is 1, max(0, margin - input) where it is -1."""
    if has_torch_function_variadic(input, target):
        return redirect(hinge_embedding_loss, locals())
    number = _number(size_average, reduce, reduction)
    return torch.hinge_embedding_loss(input, target, margin, number)


def margin_ranking_loss(
    input1: torch.Tensor,
    input2: torch.Tensor,
    target: torch.Tensor,
    margin=0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    if has_torch_function_variadic(input1, input2, target):
        return redirect(margin_ranking_loss, locals())
    number = _number(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return torch.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(
    input1: torch.Tensor,
    input2: torch.Tensor,
    target: torch.Tensor,
    margin=0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    if has_torch_function_variadic(input1, input2, target):
        return redirect(cosine_embedding_loss, locals())
    number = _number(size_average, reduce, reduction)
    return torch.cosine_embedding_loss(input1, input2, target, margin, number)


def triplet_margin_loss(
    anchor: torch.Tensor,
    positive: torch.Tensor,
    negative: torch.Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    if has_torch_function_variadic(anchor, positive, negative):
        return redirect(triplet_margin_loss, locals())
    _check_margin(margin)
    kind = (margin, p, eps, swap, _number(size_average, reduce, reduction))
    return torch.triplet_margin_loss(anchor, positive, negative, *kind)


def triplet_margin_with_distance_loss(
    anchor: torch.Tensor,
    positive: torch.Tensor,
    negative: torch.Tensor,
    *,
    distance_function=None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> torch.Tensor:
    """triplet_margin_loss with a distance of one's own."""
    if has_torch_function_variadic(anchor, positive, negative):
        return redirect(triplet_margin_with_distance_loss, locals())
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_margin(margin)
    if distance_function is None:
        distance_function = torch.nn.functional.pairwise_distance
    ranks = (anchor.ndim, positive.ndim, negative.ndim)
    if len(set(ranks)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {ranks[0]}D, positive {ranks[1]}D, and negative "
            f"{ranks[2]}D inputs"
        )
    near = distance_function(anchor, positive)
    far = distance_function(anchor, negative)
    if swap:
        far = torch.minimum(far, distance_function(positive, negative))
    loss = torch.clamp_min(margin + near - far, 0)
    return _reduced(loss, get_enum(reduction))
