"""Parts that job kinds share: protocol, specs, pod templates, volumes, companions, elasticity."""
