"""`fairlead quota …`: what the quota tree gives, to whom, and why somebody waits."""
