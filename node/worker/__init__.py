"""The process that computes: training and re-execution, apart from the services.

The daemon's event loop must always answer, so every operator runs in a child process that
speaks frames over two pipes. The child holds no keys, opens no sockets and signs nothing.
"""
