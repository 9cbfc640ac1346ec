"""Files that people write or keep: kubeconfigs, manifests, snapshots, configuration files."""
