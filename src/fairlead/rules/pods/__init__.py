"""A pod's properties: the status that kubectl prints, the devices that it asks for."""
