"""The whistleblower: looks again at what verifiers vouched for."""
