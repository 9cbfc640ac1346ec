"""`fairlead store`: the console's store, for its operator."""
