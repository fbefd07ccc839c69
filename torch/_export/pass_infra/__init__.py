"""What passes over exported graphs are written with."""
