"""Generated data whose state is known; importing the package loads nothing."""
