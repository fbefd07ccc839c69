"""The parts of torch._inductor.pattern_matcher: expressions, matches, passes, tracing."""
