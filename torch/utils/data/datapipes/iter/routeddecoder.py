"""A step that decodes files by their names."""

from __future__ import annotations

from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe, length_of
from torch.utils.data.datapipes.utils import decoder as _decoder
from torch.utils.data.datapipes.utils.decoder import extension_extract_fn

__all__ = ["RoutedDecoderIterDataPipe", "extension_extract_fn"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """(name, data) with data replaced by what the first handler(key, data) gives that is not
    None. Streams are read and closed; images become tensors where no handler takes them."""

    def __init__(self, datapipe, *handlers, key_fn=extension_extract_fn) -> None:
        super().__init__()
        self.datapipe = datapipe
        handlers = handlers or (_decoder.imagehandler("torch"),)
        self.decoder = _decoder.Decoder(*handlers, key_fn=key_fn)

    def add_handler(self, *handler) -> None:
        """Handlers that are tried after those there are."""
        self.decoder.add_handler(*handler)

    def __iter__(self):
        for name, data in self.datapipe:
            yield name, self.decoder([(name, data)])[name]

    def __len__(self) -> int:
        return length_of(self, self.datapipe)
