"""Pruning of data that belongs to no module, of activations, and of whole rows of weights."""
