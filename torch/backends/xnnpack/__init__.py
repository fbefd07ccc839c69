"""XNNPACK: not used here."""

enabled = False
