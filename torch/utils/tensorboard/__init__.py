"""Files for TensorBoard. Scalars, histograms, texts and images are written here, without the
package tensorboard; what needs it (embeddings, meshes, plugins) is not offered."""

from torch.utils.tensorboard._events import EventFile
from torch.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["EventFile", "FileWriter", "SummaryWriter"]
