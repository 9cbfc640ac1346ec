"""How we get to a server: kubeconfigs, credentials, certificates, proxies, and the words when it fails."""
