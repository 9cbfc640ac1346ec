"""The forms of what pages are told: view models, lists, errors."""
