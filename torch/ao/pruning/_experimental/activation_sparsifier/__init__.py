"""Masks for the inputs of layers."""
