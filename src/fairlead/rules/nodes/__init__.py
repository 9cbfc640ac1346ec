"""A node's properties: status, mode of GPU sharing, requests of its pods, admitted pods."""
