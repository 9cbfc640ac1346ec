"""How a store comes from one schema to the next: Alembic runs these files."""
