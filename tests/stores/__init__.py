"""The store over SQLite, a real PostgreSQL and a real MariaDB."""
