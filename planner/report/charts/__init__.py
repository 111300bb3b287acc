"""Charts of a plan as plain data for plotly.js.

Colours are names of the page's palette, `@tensor`: the page puts in what they are in
the reader's theme.
"""
