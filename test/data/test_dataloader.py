"""torch.utils.data: orders and their random draws, combined datasets, collation, DataLoader."""

from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import torch
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


class Count(IterableDataset):
    def __init__(self, stop):
        self.stop = stop

    def __iter__(self):
        return iter(range(self.stop))


# ---- samplers


def test_random_sampler_is_a_permutation_and_draws_one_more():
    got = list(RandomSampler(range(7), generator=seeded(3)))
    generator = seeded(3)
    assert got == torch.randperm(7, generator=generator).tolist()
    sampled = seeded(3)
    list(RandomSampler(range(7), generator=sampled))
    torch.randperm(7, generator=generator)
    assert torch.equal(sampled.get_state(), generator.get_state())


def test_random_sampler_without_generator_seeds_one_from_the_global_stream():
    torch.manual_seed(5)
    got = list(RandomSampler(range(9)))
    torch.manual_seed(5)
    seed = torch.empty((), dtype=torch.int64).random_().item()
    assert got == torch.randperm(9, generator=seeded(seed)).tolist()


def test_random_sampler_with_replacement_draws_in_blocks_of_32():
    got = list(RandomSampler(range(5), True, 40, generator=seeded(1)))
    generator = seeded(1)
    blocks = [torch.randint(5, (size,), generator=generator).tolist() for size in (32, 8)]
    assert got == blocks[0] + blocks[1]


def test_subset_and_weighted_samplers_choose_from_what_they_are_given():
    assert sorted(SubsetRandomSampler([3, 1, 4])) == [1, 3, 4]
    assert list(WeightedRandomSampler([0.0, 1.0, 0.0], 4)) == [1] * 4
    assert sorted(WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("drop_last", "expected"),
    [(False, [[0, 1, 2], [3, 4, 5], [6]]), (True, [[0, 1, 2], [3, 4, 5]])],
)
def test_batch_sampler_keeps_or_drops_the_rest(drop_last, expected):
    sampler = BatchSampler(SequentialSampler(range(7)), 3, drop_last)
    assert list(sampler) == expected
    assert len(sampler) == len(expected)


def test_distributed_sampler_covers_the_dataset_evenly():
    parts = [list(DistributedSampler(range(10), 3, rank)) for rank in range(3)]
    assert {len(part) for part in parts} == {4}
    assert set().union(*parts) == set(range(10))
    sampler = DistributedSampler(range(10), 3, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    kept = [list(DistributedSampler(range(10), 3, rank, False, 0, True)) for rank in range(3)]
    assert kept == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


# ---- datasets


def test_datasets_combine():
    both = ConcatDataset([range(3), range(10, 12)])
    assert [both[i] for i in range(5)] == [0, 1, 2, 10, 11]
    assert both[-1] == 11
    assert [Subset(range(5, 9), [3, 0])[i] for i in range(2)] == [8, 5]
    assert StackDataset(a=range(3), b=range(5, 8))[1] == {"a": 1, "b": 6}
    assert StackDataset(range(3), range(5, 8)).__getitems__([0, 2]) == [(0, 5), (2, 7)]
    assert list(ChainDataset([Count(2), Count(3)])) == [0, 1, 0, 1, 2]
    assert list(Count(2) + Count(1)) == [0, 1, 0]


def test_tensor_dataset_refuses_other_lengths():
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.zeros(2), torch.zeros(3))


def test_random_split_cuts_one_permutation():
    train, test = random_split(range(20), [15, 5], generator=seeded(42))
    order = torch.randperm(20, generator=seeded(42)).tolist()
    assert train.indices + test.indices == order
    assert [len(part) for part in random_split(range(10), [0.5, 0.3, 0.2])] == [5, 3, 2]
    assert [len(part) for part in random_split(range(7), [0.5, 0.5])] == [4, 3]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(range(10), [5, 4])


# ---- collation


def test_collate_stacks_tensors_and_numbers_and_keeps_texts():
    batch = default_collate([{"a": 1, "b": (2.0, [3, True])}, {"a": 4, "b": (5.0, [6, False])}])
    assert batch["a"].tolist() == [1, 4]
    assert batch["b"][0].dtype == torch.float64
    assert batch["b"][1][1].dtype == torch.bool
    assert default_collate(["x", "y"]) == ["x", "y"]
    assert default_collate([torch.zeros(2), torch.ones(2)]).shape == (2, 2)


def test_collate_keeps_the_class_of_containers():
    Pair = namedtuple("Pair", "a b")
    pair = default_collate([Pair(1, 2), Pair(3, 4)])
    assert type(pair) is Pair
    assert pair.b.tolist() == [2, 4]
    assert type(default_collate([OrderedDict(a=1)])) is OrderedDict


def test_collate_and_convert_take_numpy():
    assert default_collate([np.float32(1), np.float32(2)]).dtype == torch.float32
    assert default_collate([np.float64(1)]).dtype == torch.float64
    assert default_collate([np.arange(2), np.arange(2)]).tolist() == [[0, 1], [0, 1]]
    converted = default_convert({"a": np.arange(3), "b": ["x", 1]})
    assert converted["a"].tolist() == [0, 1, 2]
    assert converted["b"] == ["x", 1]


def test_collate_refuses_what_it_cannot_stack():
    with pytest.raises(TypeError, match="found <class 'NoneType'>"):
        default_collate([None])
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])


# ---- DataLoader


def test_loader_batches_in_order_and_reports_its_length():
    loader = DataLoader(range(7), batch_size=3)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(loader) == 3
    assert list(DataLoader(range(3), batch_size=None)) == [0, 1, 2]
    assert [len(b) for b in DataLoader(range(5), 2, collate_fn=list)] == [2, 2, 1]


def test_an_epoch_draws_one_seed_and_two_when_it_shuffles():
    def draws_of(loader):
        torch.manual_seed(0)
        list(loader)
        after = torch.get_rng_state()
        torch.manual_seed(0)
        for count in range(1, 4):
            torch.empty((), dtype=torch.int64).random_()
            if torch.equal(torch.get_rng_state(), after):
                return count
        return None

    assert draws_of(DataLoader(range(4))) == 1
    assert draws_of(DataLoader(range(4), shuffle=True)) == 2


def test_a_generator_decides_the_order():
    orders = [
        [b.tolist() for b in DataLoader(range(8), 3, True, generator=seeded(9))] for _ in range(2)
    ]
    assert orders[0] == orders[1]
    generator = seeded(9)
    torch.empty((), dtype=torch.int64).random_(generator=generator)
    flat = [index for batch in orders[0] for index in batch]
    assert flat == torch.randperm(8, generator=generator).tolist()


def test_loader_fetches_a_batch_at_once_where_the_dataset_can():
    class Many(Dataset):
        asked = []

        def __len__(self):
            return 4

        def __getitems__(self, indices):
            self.asked.append(indices)
            return indices

    list(DataLoader(Many(), batch_size=2))
    assert Many.asked == [[0, 1], [2, 3]]


def test_iterable_datasets_end_by_themselves():
    assert [b.tolist() for b in DataLoader(Count(5), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in DataLoader(Count(5), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Count(2), None)) == [0, 1]
    with pytest.raises(TypeError, match="has no len"):
        len(DataLoader(Count(5)))
    assert get_worker_info() is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer"),
        ({"num_workers": -1}, ValueError, "should be non-negative"),
        ({"timeout": -1}, ValueError, "timeout option"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor"),
        ({"persistent_workers": True}, ValueError, "num_workers > 0"),
        ({"sampler": [0], "shuffle": True}, ValueError, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
    ],
)
def test_loader_refuses_options_that_do_not_go_together(options, error, message):
    with pytest.raises(error, match=message):
        DataLoader(range(4), **options)


def test_loader_attributes_are_fixed():
    loader = DataLoader(range(4))
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 2


def test_loaders_and_samplers_take_a_type_in_brackets():
    """They are written so in annotations, which Python evaluates when the function is defined."""

    class Distributed(torch.utils.data.distributed.DistributedSampler[int]):
        pass

    def first(loader: torch.utils.data.DataLoader[int]) -> int:
        return next(iter(loader))

    assert first(torch.utils.data.DataLoader[int](range(3), batch_size=2)).tolist() == [0, 1]
    assert list(Distributed(range(4), 2, 1, shuffle=False)) == [1, 3]
