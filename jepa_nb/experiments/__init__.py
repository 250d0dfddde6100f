"""One package or module per paper: configuration -> runs -> tidy table -> figures and measurements.

``registry`` knows every notebook and the runs it reads; it is what the workflow asks, and it loads no torch.
"""
