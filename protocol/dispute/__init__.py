"""The dispute: two claims about one run descend together to the first step that differs."""
