"""Helpers for passes over graphs that programs import by this name."""
