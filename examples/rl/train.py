"""Teaches a small network to balance a pole on a cart, by trial and error (REINFORCE).

    python examples/rl/train.py            about ten seconds on two cores
    python examples/rl/train.py --quick    a shorter run, for a look

The world is a cart on a rail with a pole hinged to it; each fiftieth of a second the network pushes
the cart left or right, and the episode ends when the pole tips or the cart leaves the rail. Many
carts run side by side as one tensor, so a step of all of them costs what a step of one does."""

import argparse
import math
import sys
import time

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
RAIL, TIPPED = 2.4, math.radians(12)


def new_carts(count: int) -> Tensor:
    """Carts near the middle with the pole near upright: place, speed, angle and its speed."""
    return torch.empty(count, 4).uniform_(-0.05, 0.05)


def push(state: Tensor, action: Tensor) -> Tensor:
    """The state of each cart a tick later; action 1 pushes to the right, 0 to the left."""
    _, speed, angle, turn = state.unbind(1)
    force = (2.0 * action - 1) * FORCE
    mass = CART + POLE
    sin, cos = angle.sin(), angle.cos()
    inertia = (force + POLE * HALF_LENGTH * turn * turn * sin) / mass
    turning = (GRAVITY * sin - cos * inertia) / (HALF_LENGTH * (4 / 3 - POLE * cos * cos / mass))
    moving = inertia - POLE * HALF_LENGTH * turning * cos / mass
    rates = torch.stack([speed, moving, turn, turning], dim=1)
    return state + TICK * rates


def fallen(state: Tensor) -> Tensor:
    """Whether the episode of each cart is over."""
    return (state[:, 0].abs() > RAIL) | (state[:, 2].abs() > TIPPED)


@torch.no_grad()
def play(policy: nn.Module, carts: int, limit: int) -> tuple[Tensor, Tensor, Tensor]:
    """One episode of every cart: states (T, N, 4), actions (T, N), and which of them counted."""
    state = new_carts(carts)
    running = torch.ones(carts, dtype=torch.bool)
    states, actions, counted = [], [], []
    for _ in range(limit):
        action = Categorical(logits=policy(state), validate_args=False).sample()
        states.append(state)
        actions.append(action)
        counted.append(running)
        state = push(state, action)
        running = running & ~fallen(state)
        if not running.any():
            break
    return torch.stack(states), torch.stack(actions), torch.stack(counted)


def returns(counted: Tensor, discount: float) -> Tensor:
    """What each action led to: one point for every later tick, the sooner the more."""
    later = torch.zeros(counted.size(1))
    found = []
    for alive in counted.flip(0).float():
        later = alive * (1 + discount * later)
        found.append(later)
    return torch.stack(found).flip(0)


def learn(policy: nn.Module, optimizer: torch.optim.Adam, carts: int, limit: int) -> Tensor:
    """Plays once and makes actions that led to more than usual likelier. Gives the mean return."""
    states, actions, counted = play(policy, carts, limit)
    gained = returns(counted, 0.99)[counted]
    advantage = (gained - gained.mean()) / (gained.std() + 1e-6)
    chosen = Categorical(logits=policy(states[counted]), validate_args=False)
    optimizer.zero_grad()
    loss = -(chosen.log_prob(actions[counted]) * advantage).mean() - 0.01 * chosen.entropy().mean()
    loss.backward()
    optimizer.step()
    return counted.float().sum(0).mean()


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--carts", type=int, default=32, help="episodes to a round")
    parser.add_argument("--limit", type=int, default=500, help="ticks to an episode at most")
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="40 rounds of at most 200 ticks")
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.limit = min(options.rounds, 40), 200

    torch.manual_seed(options.seed)
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=options.rate)
    before = play(policy, 100, options.limit)[2].float().sum(0).mean().item()
    print(f"untrained: the pole stands for {before:.1f} ticks")

    start = time.monotonic()
    for number in range(1, options.rounds + 1):
        mean = learn(policy, optimizer, options.carts, options.limit).item()
        if number % 10 == 0 or number == options.rounds:
            print(
                f"round {number}/{options.rounds}  mean return {mean:.1f}  "
                f"{time.monotonic() - start:.1f} s"
            )
    after = play(policy, 100, options.limit)[2].float().sum(0).mean().item()
    print(
        f"result: the pole stands for {after:.1f} ticks of at most {options.limit}, "
        f"{before:.1f} untrained (means of 100 episodes)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
