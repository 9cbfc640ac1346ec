"""Kubeconfig files as users and kubectl write them."""

from __future__ import annotations

KUBECTL = """apiVersion: v1
clusters:
- cluster:
    server: https://prod:6443
  name: prod
contexts:
- context:
    cluster: prod
    user: ann
  name: prod
current-context: prod
kind: Config
preferences: {}
users:
- name: ann
  user:
    token: secret
"""
WITH_COMMENTS = """# kubeconfig of ann
apiVersion: v1
kind: Config   # as always
clusters:
  # production, be careful
  - name: "prod"
    cluster: {server: 'https://prod:6443'}  # the load balancer

  # the lab
  - name: lab
    cluster:
      server: https://lab:6443
      # its authority
      certificate-authority: /etc/lab.crt
users:
  - {name: ann, user: {token: "secret"}}
contexts:
  - name: prod
    context:
      cluster: prod
      user: ann
# the end
"""
