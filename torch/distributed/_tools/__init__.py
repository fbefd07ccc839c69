"""Tools that watch a model while it is trained."""
