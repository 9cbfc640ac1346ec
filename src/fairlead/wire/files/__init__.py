"""Files of people: kubeconfigs, manifests, snapshots."""
