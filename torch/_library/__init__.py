"""The parts of torch.library: schema inference, custom operators and their checks."""
