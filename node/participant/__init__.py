"""What solver, verifier and whistleblower share: the log's replica, statements, own runs, play."""
