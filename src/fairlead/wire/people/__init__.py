"""Users as arena's objects spell them."""
