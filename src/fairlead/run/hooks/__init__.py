"""What a simulated cluster asks, and who lives in it besides: by the rules of a real one."""
