"""Settings that a DataLoader makes on all steps of a data pipe: shuffling, seeds, shards."""

import inspect
import warnings

from torch.utils.data._utils.rng import draw_seed
from torch.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from torch.utils.data.graph import traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph):
    """Every pipe of a graph once, readers before what they read."""
    found = {}

    def walk(part) -> None:
        for key, (pipe, inner) in part.items():
            found.setdefault(key, pipe)
            walk(inner)

    walk(graph)
    return list(found.values())


def apply_sharding(
    datapipe, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT
):
    """Tells the sharding steps which part this process reads. One path has at most one of them."""

    def walk(graph, above) -> None:
        for pipe, inner in graph.values():
            sharding = callable(getattr(pipe, "apply_sharding", None))
            if sharding:
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause "
                        f"data loss. Sharding already applied to {above} while trying to apply to "
                        f"{pipe}"
                    )
                arguments = (num_of_instances, instance_id)
                if len(inspect.signature(pipe.apply_sharding).parameters) >= 3:
                    arguments += (sharding_group,)
                pipe.apply_sharding(*arguments)
            walk(inner, pipe if sharding else above)

    walk(traverse_dps(datapipe), None)
    return datapipe


def _shuffles(pipe) -> bool:
    return callable(getattr(pipe, "set_shuffle", None)) and callable(
        getattr(pipe, "set_seed", None)
    )


def apply_shuffle_settings(datapipe, shuffle=None):
    """Switches shuffling steps on or off; None leaves them."""
    if shuffle is None:
        return datapipe
    shufflers = list(filter(_shuffles, get_all_graph_pipes(traverse_dps(datapipe))))
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`: one is added "
            "at the end, with the default buffer size",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers.append(datapipe)
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Gives every step that draws a seed from one generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if callable(getattr(pipe, "set_seed", None)):
            pipe.set_seed(draw_seed(rng))
    return datapipe


def apply_shuffle_seed(datapipe, rng):
    """The name that apply_random_seed had first."""
    return apply_random_seed(datapipe, rng)
