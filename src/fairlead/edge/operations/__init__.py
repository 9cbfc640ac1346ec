"""Operations on a real API server: their records, and the objects that steps work on."""
