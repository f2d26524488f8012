"""What a person sees: lines made of plain values.

Every screen takes a frozen dataclass that says only what is shown, and returns lines; it asks
nobody and knows neither disk nor network. Commands and the demo share them.
"""
