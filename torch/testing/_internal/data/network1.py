"""A module to be saved; network2.py has a class of the same name with another source."""

import torch


class Net(torch.nn.Module):
    """One layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(10, 20)
