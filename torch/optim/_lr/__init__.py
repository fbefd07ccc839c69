"""The learning rate schedulers by family; `torch.optim.lr_scheduler` names them for users."""
