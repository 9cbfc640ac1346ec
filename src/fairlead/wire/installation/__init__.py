"""An installation of Fairlead as Kubernetes objects."""
