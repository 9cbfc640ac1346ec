"""What the console keeps, in SQLite, PostgreSQL or MySQL. Imported when a store is opened."""
