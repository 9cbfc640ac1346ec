"""What job kinds are made of: the questions to a kind, specs, pod templates, volumes, companions, elastic
training.
"""
