"""Control over the Python side of dispatch."""
