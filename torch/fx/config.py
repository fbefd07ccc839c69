"""Settings of torch.fx."""

# Whether passes leave out the progress bar of netmin and splitter runs.
disable_progress = True

# Whether the searches of netmin say what they do.
verbose_progress = False
