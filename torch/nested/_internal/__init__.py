"""Names of nested tensors that other packages import from here; the parts are in torch.nested."""
