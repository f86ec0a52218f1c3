"""Load tests of the service: what is sent, when, and what must come of it.

`corpus` and `bodies` say what is sent, `shapes` and `arrivals` when, `judge` what an
answer must be, `gates` what a run must be. These know no locust and are tested on
their own; `users` and `driver` are the two that do. `making` and `reference` make the
corpus, need Pillow and NumPy, and are the only ones that do.
"""
