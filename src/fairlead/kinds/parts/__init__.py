"""What job kinds are made of: questions, specs, pod templates, volumes, companions, elastic training."""
