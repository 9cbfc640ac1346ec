"""What the admission webhook is asked, and which rule answers it."""
