"""Fetchers: from indices to a batch, for datasets with indices and for those without."""

import itertools


class _BaseDatasetFetcher:
    def __init__(self, dataset, auto_collation, collate_fn, drop_last) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """The indices only say how many samples to take."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index):
        """The next batch, or sample; StopIteration at the end."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        wanted = len(possibly_batched_index)
        items = list(itertools.islice(self.dataset_iter, wanted))
        self.ended = len(items) < wanted
        if not items or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(items)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def fetch(self, possibly_batched_index):
        """The samples at the indices, collated."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        many = getattr(self.dataset, "__getitems__", None)
        if many:
            return self.collate_fn(many(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])
