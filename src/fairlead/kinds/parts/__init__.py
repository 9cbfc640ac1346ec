"""What job kinds are made of: options, specs, volumes, companions, elastic training."""
