"""The forms of the API's answers: view models, lists, errors."""
