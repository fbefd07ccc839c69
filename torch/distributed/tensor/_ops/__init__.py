"""Questions about specs, under the name that programs with rules of their own use."""
