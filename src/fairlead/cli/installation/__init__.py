"""Verbs that install, upgrade and remove Fairlead."""
