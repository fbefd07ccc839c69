"""The code generator: reads the operator list (native_functions.yaml) and writes C++, Python
bindings, stubs and docs.

It runs at build time only; nothing in the package imports it at run time.
"""
