"""Claims of volumes, and the objects of Fluid."""
