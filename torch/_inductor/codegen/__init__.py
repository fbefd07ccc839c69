"""Texts of compiled graphs."""
