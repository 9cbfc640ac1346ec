"""Users and user groups: what they are, which rights they have, what follows from them."""
