"""What `make bench` times: name, set-up and statement of each case, as source text.

Text, because the same case runs in two interpreters with two different torches. A case is one
public call or a short sequence; `small` cases measure overhead, `large` ones the kernels,
`training` whole small steps.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    group: str
    name: str
    setup: str
    statement: str


def cases() -> list[Case]:
    small = "a = torch.rand(4, 4); b = torch.rand(4, 4); i = torch.arange(4)"
    large = (
        "a = torch.rand(1024, 1024); b = torch.rand(1024, 1024); m = a > 0.5; "
        "i = torch.randint(0, 1024, (1024,)); h = a.to(torch.bfloat16)"
    )
    table = {
        "small": (
            small,
            ["a + b", "a + 1", "a * 2.5", "a.add_(b)", "a > b", "a[0]", "a[1:3]", "a[i]"]
            + ["a.view(16)", "a.t()", "a.sum()", "a.max(dim=1)", "a.exp()", "a @ b"]
            + ["torch.zeros(4, 4)", "torch.empty(16)", "torch.tensor([1.0, 2.0, 3.0])"]
            + ["torch.cat([a, b])", "a.clone()", "a.to(torch.float64)", "i[2].item()"]
            + ["torch.where(a > b, a, b)", "a.tolist()", "a.unsqueeze(0).expand(3, 4, 4)"],
        ),
        "large": (
            large,
            ["a + b", "a.exp()", "a.tanh()", "a.sigmoid()", "a.log()", "a.pow(2.5)", "h + h"]
            + ["a.sum()", "a.sum(dim=0)", "a.sum(dim=1)", "a.max(dim=1)", "a.mean(dim=-1)"]
            + ["a @ b", "a.t().contiguous()", "a.to(torch.bfloat16)", "a[i]", "a[m]"]
            + ["a.index_select(1, i)", "a.masked_fill(m, 0.0)", "torch.where(m, a, b)"]
            + ["torch.cat([a, b])", "torch.rand(1024, 1024)", "torch.randn(1024, 1024)"],
        ),
    }
    plain = [
        Case(group, f"{group}: {statement}", setup, statement)
        for group, (setup, statements) in table.items()
        for statement in statements
    ]
    return plain + training_cases()


def training_cases() -> list[Case]:
    perceptron = (
        "nn = torch.nn; F = nn.functional; m = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), "
        "nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1)); x = torch.randn(8, 16); "
        "y = torch.randn(8, 1); o = torch.optim.{}(m.parameters(), lr=0.01)"
    )
    step = "o.zero_grad(); F.mse_loss(m(x), y).backward(); o.step()"
    small = "a = torch.ones(4, 4, requires_grad=True); b = torch.ones(4, 4)"
    linear = "m = torch.nn.Linear(4, 4); x = torch.ones(4, 4)"
    listed = [
        ("a * b, with gradient", small, "a * b"),
        ("(a * b).sum().backward()", small, "(a * b).sum().backward()"),
        ("nn.Linear(4, 4)(x)", linear, "m(x)"),
        ("perceptron step, SGD", perceptron.format("SGD"), step),
        ("perceptron step, AdamW", perceptron.format("AdamW"), step),
    ]
    return [Case("training", f"training: {name}", setup, code) for name, setup, code in listed]
