"""A pipe of file names."""

from __future__ import annotations

import fnmatch
import os

from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from torch.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe

__all__ = ["FileListerIterDataPipe"]


def _matches(name, masks) -> bool:
    masks = [masks] if isinstance(masks, str) else masks
    return not masks or masks == [""] or any(fnmatch.fnmatch(name, mask) for mask in masks)


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The files in folders whose names fit a mask, sorted unless non_deterministic."""

    def __init__(
        self,
        root=".",
        masks="",
        *,
        recursive=False,
        abspath=False,
        non_deterministic=False,
        length=-1,
    ) -> None:
        super().__init__()
        if isinstance(root, str):
            root = [root]
        if not isinstance(root, IterDataPipe):
            root = IterableWrapperIterDataPipe(root)
        self.datapipe = root
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self):
        for root in self.datapipe:
            yield from self._files(os.path.abspath(root) if self.abspath else root)

    def _files(self, root):
        if os.path.isfile(root):
            if _matches(os.path.basename(root), self.masks):
                yield root
            return
        for folder, folders, files in os.walk(root):
            if not self.non_deterministic:
                folders.sort()
                files.sort()
            for name in files:
                if _matches(name, self.masks):
                    yield os.path.join(folder, name)
            if not self.recursive:
                return

    def __len__(self):
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length
