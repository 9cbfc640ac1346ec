"""`fairlead quota …`: the quota tree, its usage, the controller's plans, why pods wait."""
