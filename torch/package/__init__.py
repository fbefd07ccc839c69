"""Packages of code and tensors: the names. Making or reading one raises NotImplementedError."""

from torch import _later

__all__ = ["PackageExporter", "PackageImporter"]

globals().update(
    _later.names(
        __name__,
        "Directory EmptyMatchError GlobGroup Importer ObjMismatchError ObjNotFoundError "
        "OrderedImporter PackageExporter PackageImporter PackagingError sys_importer",
    )
)
