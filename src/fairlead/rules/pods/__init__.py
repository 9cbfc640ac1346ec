"""What a pod says of itself: the status that kubectl prints, the devices that it asks for."""
