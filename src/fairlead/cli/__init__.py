"""The command line: a module for each verb, in folders by subject; `frame` holds what all share."""
