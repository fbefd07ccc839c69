"""`.pt2` archives: programs with their tensors in a zip file."""
