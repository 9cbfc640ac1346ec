"""Makes Helm templates from Python functions of a typed value; docs/project/designs/0011."""
