"""Function transforms: the Python half of torch.func. Levels and wrapper tensors are in C++
(torch._C._functorch); what is here says what each transform wraps and unwraps."""
