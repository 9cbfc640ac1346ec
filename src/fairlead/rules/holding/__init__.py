"""The one account of what each pod holds of each GPU, and the views of it that boards and metrics
show.
"""
