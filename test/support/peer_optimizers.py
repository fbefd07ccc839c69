"""Three steps of every optimizer, its state_dict, and three more steps. Run by PyTorch 2.13 this
made peer_optimizers.txt: after loading a state_dict from there, ours must go the same way, and the
state_dict that ours makes must have the same keys, types, shapes and dtypes.
`python test/support/peer_optimizers.py OUT` records with whichever torch the interpreter has."""

import base64
import io
import sys
import warnings
import zlib

import torch

CASES = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"lr": 0.01},
    "Adam amsgrad": {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1},
    "Adam foreach": {"lr": 0.01, "foreach": True},
    "Adam fused": {"lr": 0.01, "fused": True},
    "Adam capturable": {"lr": torch.tensor(0.01), "foreach": False},
    "AdamW": {"lr": 0.01},
    "AdamW amsgrad": {"lr": 0.01, "amsgrad": True, "maximize": True},
    "Adamax": {"lr": 0.01},
    "Adadelta": {"lr": 1.0},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.01},
    "ASGD": {"lr": 0.1},
    "NAdam": {"lr": 0.01},
    "NAdam decoupled": {"lr": 0.01, "decoupled_weight_decay": True, "weight_decay": 0.1},
    "RAdam": {"lr": 0.01},
    "RMSprop": {"lr": 0.01},
    "RMSprop centered": {"lr": 0.01, "centered": True, "momentum": 0.9},
    "Rprop": {"lr": 0.01},
    "LBFGS": {"lr": 0.1, "max_iter": 4},
    "SparseAdam": {"lr": 0.01},
    "Adafactor": {"lr": 0.01},
    "Muon": {"lr": 0.01},
}


def parameters(case):
    """Fresh parameters; those of Muon are matrices only."""
    sizes = [(4, 3), (5, 2)] if case == "Muon" else [(4, 3), (5,)]
    made = []
    for number, size in enumerate(sizes):
        values = torch.linspace(-1, 1, size[0] * (size[1] if len(size) > 1 else 1)).view(size)
        made.append(torch.nn.Parameter(values * (number + 1)))
    return made


def make(case, params):
    """The optimizer of a case, in two groups where it takes them."""
    cls = getattr(torch.optim, case.split()[0])
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.02}]
    return cls(params if case == "LBFGS" else groups, **CASES[case])


def run(optimizer, params, steps, case):
    """Steps on a fixed function of the parameters."""

    def closure():
        optimizer.zero_grad()
        loss = sum((p.sin() * (i + 1)).sum() + (p * p).sum() for i, p in enumerate(params))
        loss.backward()
        if case == "SparseAdam":
            for p in params:
                p.grad = p.grad.to_sparse()
        return loss

    for _ in range(steps):
        if case == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()


def story(case):
    """What is recorded of a case."""
    params = parameters(case)
    optimizer = make(case, params)
    run(optimizer, params, 3, case)
    middle = [p.detach().clone() for p in params]
    # A copy through a file: the next steps change the tensors of a state_dict.
    buffer = io.BytesIO()
    torch.save(optimizer.state_dict(), buffer)
    run(optimizer, params, 3, case)
    end = [p.detach().clone() for p in params]
    return {"middle": middle, "state": buffer.getvalue(), "end": end}


def record(path):
    """Writes one line: a file with all cases."""
    buffer = io.BytesIO()
    torch.save({case: story(case) for case in CASES}, buffer)
    with open(path, "w") as out:
        out.write(base64.b64encode(zlib.compress(buffer.getvalue(), 9)).decode() + "\n")


def recorded(path):
    """The cases of a recording."""
    with open(path) as file:
        return torch.load(io.BytesIO(zlib.decompress(base64.b64decode(file.read()))))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    record(sys.argv[1])
