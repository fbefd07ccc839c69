"""A step that decodes files by their names."""

from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe

__all__ = ["RoutedDecoderIterDataPipe", "extension_extract_fn"]


def extension_extract_fn(pathname):
    """The extension of a name, without the dot."""
    return pathname.rsplit(".", 1)[-1] if "." in pathname else ""


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """(name, data) with data replaced by what the first handler(key, data) gives that is not
    None. Streams are read."""

    def __init__(self, datapipe, *handlers, key_fn=extension_extract_fn):
        super().__init__()
        self.datapipe = datapipe
        self.handlers = list(handlers)
        self.key_fn = key_fn

    def add_handler(self, *handler):
        """Handlers that are tried after those there are."""
        self.handlers.extend(handler)

    def _decode(self, name, data):
        if hasattr(data, "read"):
            with data as stream:
                data = stream.read()
        for handler in self.handlers:
            result = handler(self.key_fn(name), data)
            if result is not None:
                return result
        return data

    def __iter__(self):
        for name, data in self.datapipe:
            yield name, self._decode(name, data)

    def __len__(self):
        return len(self.datapipe)
