"""Passes over graphs between tracing and lowering: pre_grad sees the captured graph, joint_graph
the traced one with its derivative, post_grad what is lowered."""
