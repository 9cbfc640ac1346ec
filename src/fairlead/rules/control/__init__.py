"""What all deciders share: their interface, calls that the watch does not show yet, and messages to
users.
"""
