"""Who am I?"""
