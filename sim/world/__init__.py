"""The simulated world: link, compute, memory and engine. The only place that uses SimPy."""
