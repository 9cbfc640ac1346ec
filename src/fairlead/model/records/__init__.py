"""What the store of the console keeps: sign-ins, audit, credentials, tree versions, owners."""
