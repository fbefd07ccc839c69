"""Compiled models in files. docs/aotinductor.md says how it works."""

from torch._inductor.package.package import AOTICompiledModel, load_package, package_aoti

__all__ = ["AOTICompiledModel", "load_package", "package_aoti"]
