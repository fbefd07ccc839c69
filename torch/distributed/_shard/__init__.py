"""Tensors whose parts lie on several ranks, as before DTensor: rectangles with a place."""
