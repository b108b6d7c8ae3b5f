"""Tables, plots and traces for people."""
