"""What torch.compile hands graphs to."""
