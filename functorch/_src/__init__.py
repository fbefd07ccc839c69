"""Where functorch kept its sources before they moved to torch._functorch."""
