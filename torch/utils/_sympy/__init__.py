"""Symbolic expressions as sympy objects: what `SymInt.node.expr` is made of. Nothing here is loaded
unless a program asks for sympy objects."""
