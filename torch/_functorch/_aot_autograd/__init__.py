"""AOTAutograd in its stages: `inputs` brings arguments into a form that can be traced, `trace` runs
the function and its derivative once and records a graph without writes, `alias` and `runtime` make
of the compiled graphs a function that writes and returns what the original one did."""
