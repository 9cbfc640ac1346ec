"""An installation of Fairlead as it was found in a cluster, and what a doctor found about it."""
