"""Programs: their data, their checks and the unrolled step."""
