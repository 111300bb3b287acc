"""Charts of a plan as plain data for plotly.js.

Colours are names of the page's palette, `@tensor`. The page puts in the colours of
the reader's theme.
"""
