"""Data pipes: steps against lists, shuffles against recorded orders, and pipes in a DataLoader."""

import functools
import io
import pickle

import pytest

import torch
from torch.utils.data import (
    DataChunk,
    DataLoader,
    IterDataPipe,
    MapDataPipe,
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from torch.utils.data.datapipes.iter import (
    FileLister,
    FileOpener,
    IterableWrapper,
    Sampler,
    ShardingFilter,
)
from torch.utils.data.datapipes.map import SequenceWrapper
from torch.utils.data.graph import traverse_dps
from torch.utils.data.graph_settings import apply_sharding, apply_shuffle_settings


def pipe(count=10):
    return IterableWrapper(range(count))


def even(number):
    return number % 2 == 0


def remainder(number):
    return number % 3


def test_steps():
    assert list(pipe(4).map(float)) == [0.0, 1.0, 2.0, 3.0]
    assert list(pipe(5).filter(even)) == [0, 2, 4]
    assert list(pipe(5).batch(2)) == [[0, 1], [2, 3], [4]]
    assert list(pipe(5).batch(2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(pipe(5).batch(2).batch(2).unbatch(2)) == list(range(5))
    assert list(pipe(4).batch(2).batch(2).unbatch(-1)) == list(range(4))
    assert list(pipe(3).zip(IterableWrapper("ab"))) == [(0, "a"), (1, "b")]
    assert list(pipe(2).concat(pipe(1))) == [0, 1, 0]
    assert list(pipe(3).mux(IterableWrapper("ab"))) == [0, "a", 1, "b"]
    assert [batch.tolist() for batch in pipe(4).batch(2).collate()] == [[0, 1], [2, 3]]
    assert list(Sampler(pipe(3))) == [0, 1, 2]
    grouped = list(pipe().groupby(remainder, group_size=2))
    assert grouped == [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]
    assert list(pipe(4).groupby(even, keep_key=True)) == [(True, [0, 2]), (False, [1, 3])]
    assert len(pipe(5).batch(2)) == 3 and len(pipe(5).map(float)) == 5
    pairs = IterableWrapper([(1, 2), (3, 4)])
    assert list(pairs.map(lambda x: x * 10, input_col=1)) == [(1, 20), (3, 40)]
    assert list(pairs.map(lambda a, b: a + b, input_col=[0, 1], output_col=-1)) == [
        (1, 2, 3),
        (3, 4, 7),
    ]
    with pytest.raises(ValueError, match="Boolean output"):
        list(pipe(2).filter(lambda x: x))


def test_splits():
    one, two = pipe(4).fork(2)
    assert list(zip(one, two, strict=True)) == [(i, i) for i in range(4)]
    assert list(one) == list(two) == [0, 1, 2, 3]
    evens, odds = pipe(6).demux(2, lambda x: x % 2)
    assert list(odds) == [1, 3, 5] and list(evens) == [0, 2, 4]
    one, two = pipe(9).fork(2, buffer_size=3)
    with pytest.raises(BufferError, match="buffer size 3"):
        list(one)


def test_shuffles_are_those_recorded_from_pytorch():
    assert list(pipe().shuffle().set_seed(3)) == [3, 9, 2, 4, 7, 6, 0, 8, 1, 5]
    assert list(pipe().shuffle(buffer_size=2).set_seed(1)) == [0, 2, 1, 3, 4, 6, 7, 8, 5, 9]
    torch.manual_seed(0)
    assert list(pipe().shuffle()) == [3, 5, 0, 1, 9, 6, 2, 7, 4, 8]
    assert list(pipe().shuffle().set_shuffle(False)) == list(range(10))
    assert list(SequenceWrapper([1, 2, 3]).shuffle().set_seed(1)) == [2, 3, 1]


def test_loader_shuffles_once_and_shards():
    def orders(**kwargs):
        generator = torch.Generator().manual_seed(1)
        data = pipe().shuffle().sharding_filter()
        loader = DataLoader(data, batch_size=2, shuffle=True, generator=generator, **kwargs)
        return [[batch.tolist() for batch in loader] for _ in range(2)]

    first = [[9, 2], [1, 4], [6, 8], [5, 3], [0, 7]]
    assert orders()[0] == first
    both = orders(num_workers=2)
    assert both[0] == [[9, 1], [2, 4], [6, 5], [8, 3], [0], [7]]
    assert both[1] == [[5, 6], [7, 1], [4, 0], [3, 2], [9], [8]]
    assert orders(num_workers=2, persistent_workers=True) == both
    plain = DataLoader(pipe(4).shuffle(), batch_size=4, shuffle=False)
    assert next(iter(plain)).tolist() == [0, 1, 2, 3]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        assert type(apply_shuffle_settings(pipe(), True)).__name__ == "ShufflerIterDataPipe"


def test_resume_of_a_shuffled_pipe():
    def make():
        return DataLoader(pipe().shuffle().sharding_filter(), batch_size=2, num_workers=2)

    torch.manual_seed(5)
    loader = make()
    iterator = iter(loader)
    next(iterator), next(iterator), next(iterator)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in iterator]
    other = make()
    other.load_state_dict(state)
    assert [batch.tolist() for batch in other] == rest


def test_one_iterator_at_a_time():
    source = pipe(3)
    old = iter(source)
    assert next(old) == 0
    assert next(iter(source)) == 0
    with pytest.raises(RuntimeError, match="invalidated"):
        next(old)
    assert list(source) == [0, 1, 2]


def test_sharding():
    data = pipe(7).sharding_filter()
    apply_sharding(data, 3, 1)
    assert list(data) == [1, 4] and len(data) == 2
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(ShardingFilter(pipe().sharding_filter()), 2, 0)
    with pytest.raises(ValueError, match="should be smaller"):
        data.apply_sharding(2, 2)


def test_own_steps_and_graph():
    @functional_datapipe("twice_in_test")
    class Twice(IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            for item in self.source:
                yield item
                yield item

    try:
        last = pipe(2).twice_in_test()
        assert list(last) == [0, 0, 1, 1]
        graph = traverse_dps(last)
        assert list(graph) == [id(last)] and list(graph[id(last)][1]) == [id(last.source)]
        with pytest.raises(Exception, match="already taken"):
            functional_datapipe("twice_in_test")(Twice)
    finally:
        del IterDataPipe.functions["twice_in_test"]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pipe().nothing
    with pytest.raises(TypeError, match="can only decorate"):
        functional_datapipe("x")(int)


def test_map_pipes():
    data = SequenceWrapper([1, 2, 3])
    assert isinstance(data, MapDataPipe) and data.map(str)[2] == "3"
    assert [data.batch(2)[i] for i in range(2)] == [[1, 2], [3]]
    assert data.zip(data)[1] == (2, 2) and data.concat(data)[4] == 2 and len(data.concat(data)) == 6
    assert [b.tolist() for b in DataLoader(data, batch_size=2)] == [[1, 2], [3]]


def test_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).write_text(name)
    names = FileLister(str(tmp_path), "*.txt")
    contents = list(FileOpener(names, "rb").read_from_stream())
    assert [data for _, data in contents] == [b"a.txt", b"b.txt"]


def test_copies_and_chunks():
    made = pickle.loads(pickle.dumps(pipe(4).map(float).batch(2)))
    assert list(made) == [[0.0, 1.0], [2.0, 3.0]]
    chunk = DataChunk([1, 2])
    assert (
        chunk == [1, 2] and chunk.as_str(" ") == " [1, 2]" and repr(pipe()).startswith("Iterable")
    )


def test_determinism_can_be_asked_for():
    @non_deterministic
    class Random(IterDataPipe):
        pass

    class Perhaps(IterDataPipe):
        @non_deterministic(lambda at_random: at_random)
        def __init__(self, at_random):
            self.at_random = at_random

    Random(), Perhaps(True)
    with guaranteed_datapipes_determinism():
        with pytest.raises(TypeError, match="Random is non-deterministic"):
            Random()
        with pytest.raises(TypeError, match="Perhaps is non-deterministic"):
            Perhaps(True)
        Perhaps(False)
    Random()
    with pytest.raises(TypeError, match="Only `IterDataPipe`"):
        non_deterministic(int)


def test_annotations_are_checked_where_asked():
    class Whole(IterDataPipe[int]):
        @argument_validation
        def __init__(self, source: IterDataPipe[int], limit: int = 3):
            self.source = source

        @runtime_validation
        def __iter__(self):
            yield from self.source

    assert list(Whole(pipe(2), "not checked")) == [0, 1]
    with pytest.raises(TypeError, match="Expected argument 'source' as a IterDataPipe"):
        Whole([1])
    mixed = Whole(IterableWrapper([1, "a"]))
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of <class 'int'>"):
        list(mixed)
    with runtime_validation_disabled():
        assert list(mixed) == [1, "a"]


def test_decoding_by_name():
    data = IterableWrapper([("a.txt", b"x"), ("b.bin", b"y")])
    decoded = data.routed_decode(lambda key, content: content.decode() if key == "txt" else None)
    assert list(decoded) == [("a.txt", "x"), ("b.bin", b"y")]
    decoded.add_handler(lambda key, content: key)
    assert list(decoded) == [("a.txt", "x"), ("b.bin", "bin")]


# ---- passes, snapshots, streams ------------------------------------------------------------------


def test_a_pass_counts_what_it_has_given_out():
    source = pipe(10)
    iterator = iter(source)
    next(iterator), next(iterator)
    assert source._number_of_samples_yielded == 2
    again = pickle.loads(pickle.dumps(source))
    assert again._number_of_samples_yielded == 2
    assert list(source) == list(range(10))
    assert source._number_of_samples_yielded == 10


def _double(x):
    return 2 * x


def test_a_restored_snapshot_goes_on_where_the_run_was():
    from torch.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration
    from torch.utils.data.graph_settings import apply_random_seed

    graph = pipe(12).shuffle().map(_double).batch(2)
    apply_random_seed(graph, torch.Generator().manual_seed(3))
    expected = list(graph)
    _simple_graph_snapshot_restoration(graph, 2, torch.Generator().manual_seed(3))
    with pytest.raises(RuntimeError, match="Snapshot restoration cannot be applied"):
        _simple_graph_snapshot_restoration(graph, 2)
    assert list(graph) == expected[2:]
    assert len(list(graph)) == 6


def test_a_child_that_begins_again_warns_of_the_others_and_ends_them():
    first, second = pipe(4).fork(2)
    left, right = iter(first), iter(second)
    with pytest.warns(UserWarning, match="child DataPipes are not exhausted"):
        anew = iter(first)
    for old in (left, right):
        with pytest.raises(RuntimeError, match="This iterator has been invalidated"):
            next(old)
    assert (list(anew), list(second)) == ([0, 1, 2, 3], [0, 1, 2, 3])


def test_forks_can_be_pickled():
    first, second = pickle.loads(pickle.dumps(pipe(3).fork(2)))
    assert list(first.zip(second)) == [(0, 0), (1, 1), (2, 2)]


class _NoLength(IterDataPipe):
    def __iter__(self):
        return iter(range(3))


@pytest.mark.parametrize("step", ["map", "batch", "concat", "collate", "shuffle"])
def test_a_step_without_length_says_so_in_its_own_name(step):
    arguments = {"map": (_double,), "batch": (2,), "concat": (pipe(1),)}.get(step, ())
    made = getattr(_NoLength(), step)(*arguments)
    with pytest.raises(TypeError, match=rf"^{type(made).__name__} instance doesn't have valid len"):
        len(made)


def test_functions_that_cannot_be_pickled_are_warned_of():
    with pytest.warns(UserWarning, match="^Lambda function is not supported by pickle"):
        pipe(1).map(lambda x: x)

    def local(x):
        return x

    with pytest.warns(UserWarning, match="^Local function is not supported by pickle"):
        pipe(1).filter(functools.partial(local))


def test_methods_carry_the_name_the_arguments_and_an_example():
    text = pipe(1).batch.__doc__
    assert "(functional name: ``batch``)" in text
    assert ">>> pipe = pipe.batch(batch_size)" in text
    assert "drop_last (default: False)" in text


def test_a_stream_closes_with_its_wrapper_and_a_parent_with_its_last_child(tmp_path):
    from torch.utils.data.datapipes.utils.common import StreamWrapper

    inner, archive = io.BytesIO(b"abc"), io.BytesIO()
    parent = StreamWrapper(archive)
    child = StreamWrapper(inner, parent, name="part")
    assert child.read() == b"abc"
    assert repr(child) == "StreamWrapper<part>"
    parent.autoclose()
    assert not archive.closed
    del child
    assert inner.closed and archive.closed


def test_decoding_by_ending_closes_the_streams(tmp_path):
    from torch.utils.data.datapipes.utils.decoder import basichandlers

    for name, content in (("a.txt", b"text"), ("b.json", b"[1]"), ("c.cls", b"7"), ("d.x", b"?")):
        (tmp_path / name).write_bytes(content)
    opened = list(FileOpener(FileLister(str(tmp_path)), mode="b"))
    decoded = dict(IterableWrapper(opened, deepcopy=False).routed_decode(basichandlers))
    values = {name.rsplit("/", 1)[1]: value for name, value in decoded.items()}
    assert values == {"a.txt": "text", "b.json": [1], "c.cls": 7, "d.x": b"?"}
    assert all(stream.closed for _, stream in opened)
    assert list(FileLister([str(tmp_path / "a.txt"), str(tmp_path / "none")])) == [
        str(tmp_path / "a.txt")
    ]
