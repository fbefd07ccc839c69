"""The loss curve as a picture, by matplotlib: raw losses faint, their running mean in front, the
loss on held-out text as marked points, so that both noise and trend can be seen at a glance."""

import pathlib

RAW, MEAN, HELD_OUT = "#9db9dc", "#1f5aa0", "#cd5c28"


def running_mean(values: list[float], window: int) -> list[float]:
    """The mean of the last `window` values at each place, of fewer at the start."""
    means, total = [], 0.0
    for i, value in enumerate(values):
        total += value - (values[i - window] if i >= window else 0.0)
        means.append(total / min(i + 1, window))
    return means


def draw_losses(
    path: pathlib.Path, losses: list[float], tests: list[tuple[int, float]], title: str
) -> None:
    """Writes the picture. Raises ImportError where matplotlib is not installed."""
    from matplotlib.figure import Figure

    if not losses:
        raise ValueError("draw_losses: no step was trained, there is nothing to draw")
    steps = range(1, len(losses) + 1)
    window = max(1, len(losses) // 100)
    figure = Figure(figsize=(9, 5.2), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.plot(steps, losses, color=RAW, linewidth=0.6, label="training, each step")
    mean = running_mean(losses, window)
    axes.plot(steps, mean, color=MEAN, linewidth=1.8, label=f"training, mean of {window} steps")
    if tests:
        at_steps, values = zip(*tests, strict=True)
        axes.plot(
            at_steps, values, color=HELD_OUT, marker="o", markersize=4, label="text not trained on"
        )
        axes.annotate(
            f"{values[-1]:.3f}",
            (at_steps[-1], values[-1]),
            textcoords="offset points",
            xytext=(0, 8),
            ha="right",
            color=HELD_OUT,
        )
    axes.set_title(title)
    axes.set_xlabel("step")
    axes.set_ylabel("loss (nats per character)")
    axes.set_xlim(0, len(losses))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path)
