"""Parts of the passes of torch.fx."""
