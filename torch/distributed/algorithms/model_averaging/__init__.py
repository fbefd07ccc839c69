"""Averaging parameters now and then, in the place of gradients at every step."""
