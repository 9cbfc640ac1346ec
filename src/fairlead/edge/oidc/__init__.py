"""OpenID Connect: the provider at which users of the console sign in."""
