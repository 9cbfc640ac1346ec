"""How a program begins, which cluster it speaks to, which servers it starts. The only room that knows the simulated cluster."""
