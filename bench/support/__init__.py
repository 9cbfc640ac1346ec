"""What measurements share: processes and their cost, clusters with objects, clients to compare
with.
"""
