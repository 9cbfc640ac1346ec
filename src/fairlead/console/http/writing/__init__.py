"""How the console writes: one frame for every write, and what is planned for each."""
