"""Exported programs as data: the records of the format, and the way from a program to them and
back."""
