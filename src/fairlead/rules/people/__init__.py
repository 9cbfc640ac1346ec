"""What follows from users and user groups: ServiceAccounts, bindings, refusals, statuses."""
