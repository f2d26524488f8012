"""The native kernels built with AddressSanitizer and UndefinedBehaviorSanitizer, and run."""
