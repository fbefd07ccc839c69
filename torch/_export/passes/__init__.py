"""Passes over exported graphs."""
